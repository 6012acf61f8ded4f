import { columnCheckName } from '../sql/ddl.ts';
import { constraintViolation, type ConstraintViolation, describeViolation } from './constraint-violation.ts';
import type { Db } from './db.ts';
import type { Model } from '../declare/model.ts';
import { derivedName, quoteName } from '../declare/names.ts';

/**
 * Finds the columns of the rule that a write to this model broke, where the database does not say them, and returns the error: PostgreSQL
 * says them in the server's language, SQLite not at all for references. Reads outside the transaction, which takes no more statements.
 */
export async function nameViolation(db: Db, model: Model, rows: readonly object[], error: unknown): Promise<unknown> {
  const violation = constraintViolation(error);
  if (violation === undefined || violation.kind === 'restrict' || (violation.table ?? model.name) !== model.name) return error;
  const columns =
    columnsOfRule(model, violation) ??
    violation.columns ??
    (violation.kind === 'foreign_key' ? await brokenReferences(db, model, rows) : undefined);
  if (columns !== undefined)
    describeViolation(error as object, { ...violation, table: model.name, columns: declaredColumns(model, columns) });
  return error;
}

/** What the declaration calls the columns of a rule: an encrypted column is unique by its search values. */
export function declaredColumns(model: Model, columns: readonly string[]): readonly string[] {
  return columns.map((name) => model.columns[name]?.settings.searchOf ?? name);
}

function columnsOfRule(model: Model, { constraint }: ConstraintViolation): readonly string[] | undefined {
  if (constraint === undefined) return undefined;
  const { name, table, primaryKey } = model;
  if (constraint === derivedName(name, 'pkey')) return primaryKey;
  const index = table.indexes.find((each) => each.name === constraint);
  if (index !== undefined) return index.columns.map((column) => column.replace(/^-/, ''));
  const column = Object.keys(table.columns).find(
    (each) => constraint === columnCheckName(name, each) || constraint === derivedName(name, each, 'fkey'),
  );
  return column === undefined ? undefined : [column];
}

/** The columns, of those given, whose values lead to no row. Asked where the database says that one does, and not which. */
export async function brokenReferences(
  db: Db,
  { table }: Model,
  rows: readonly object[],
  among: readonly string[] = Object.keys(table.columns),
): Promise<readonly string[] | undefined> {
  const broken = new Set<string>();
  try {
    for (const name of among) {
      const references = table.columns[name]?.references;
      if (references === undefined) continue;
      const text = `select 1 as found from ${quoteName(references.table)} where ${quoteName(references.column)} = $1`;
      const values = new Set(rows.map((row) => (row as Readonly<Record<string, unknown>>)[name]));
      for (const value of values)
        if (value !== undefined && value !== null && (await db.database.query(text, [value])).length === 0) broken.add(name);
    }
  } catch {
    return undefined; // the error to report is the first one
  }
  return broken.size === 0 ? undefined : [...broken];
}
