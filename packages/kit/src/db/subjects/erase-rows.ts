import { toJson } from '../declare/column-json.ts';
import type { Model } from '../declare/model.ts';
import type { Erasing } from '../declare/personal-column.ts';
import { quoteName as q } from '../declare/names.ts';
import type { Db } from '../engine/db.ts';
import { update } from '../rows/repository.ts';
import { keysetOf } from '../sql/keyset/keyset.ts';
import { statementsOf } from '../sql/model-statements.ts';
import { rowKey, rowKeyText } from '../sql/row-key.ts';

export type ErasedRow = Readonly<Record<string, unknown>>;

/** Called in the transaction that erases rows, before it does: for what belongs to them and is in no table, such as files. */
export type BeforeErase = (tx: Db, model: Model, rows: readonly ErasedRow[], erasing: Erasing) => Promise<void>;

/**
 * Called in the same transaction when they are erased, with the rows as they were: for those who have read them. `changed`: the columns that have another value;
 * null: the rows are gone.
 */
export type AfterErase = (tx: Db, model: Model, rows: readonly ErasedRow[], changed: readonly string[] | null) => Promise<void>;

/** What others do about rows that are erased. */
export interface ErasureListeners {
  readonly beforeErase?: BeforeErase | undefined;
  readonly afterErase?: AfterErase | undefined;
}

export interface RowBatch {
  readonly model: Model;
  /** A condition on `r`; its values are added to `values`. */
  readonly where: (values: unknown[]) => string | undefined;
  /** The key of the last row of the batch before, in JSON form. */
  readonly after: readonly unknown[] | null;
  readonly limit: number;
}

/** Rows of one batch, locked until the transaction ends. */
export async function lockRows(tx: Db, { model, where, after, limit }: RowBatch): Promise<ErasedRow[]> {
  const statements = statementsOf(model);
  const keyset = keysetOf(model, model.primaryKey, 'r');
  const values: unknown[] = [];
  const condition = where(values);
  if (condition === undefined) return [];
  const conditions = [condition];
  if (after !== null) conditions.push(keyset.append(tx.dialect, { position: after, backwards: false }, values));
  const lock = tx.dialect === 'postgres' ? ' for update of r' : '';
  return tx.query(
    `select ${statements.columns.map(({ name }) => `r.${q(name)}`).join(', ')} from ${statements.table} r where ${conditions.join(' and ')}` +
      ` order by ${keyset.orderSql(tx.dialect)} limit $${values.push(limit)}${lock}`,
    values,
  );
}

interface ErasingOptions extends ErasureListeners {
  readonly erasing: Erasing;
  /** Those that name the person. */
  readonly columns: readonly string[];
  /** Whether the database is the one with the change log. */
  readonly hasChangeLog: boolean;
}

/** Deletes or changes the rows of a batch, and what the change log keeps of them. */
export async function eraseRows(
  tx: Db,
  model: Model,
  rows: readonly ErasedRow[],
  { erasing, columns, beforeErase, afterErase, hasChangeLog }: ErasingOptions,
): Promise<void> {
  if (rows.length === 0) return;
  await beforeErase?.(tx, model, rows, erasing);
  if (erasing === 'delete') await deleteRows(tx, model, rows);
  else for (const row of rows) await update(tx, model, keyOf(model, row), replacements(model, row, erasing, columns));
  if (hasChangeLog) await forgetChanges(tx, model, rows);
  const changed = erasing === 'delete' ? null : Object.keys(replacements(model, rows[0] as ErasedRow, erasing, columns));
  await afterErase?.(tx, model, rows, changed);
}

/** What an erased row keeps: everything but these. */
function replacements(model: Model, row: ErasedRow, erasing: Erasing, columns: readonly string[]): Record<string, unknown> {
  const key = keyText(model, row);
  return Object.fromEntries(
    Object.entries(model.columns).flatMap(([name, { settings }]) => {
      if (columns.includes(name)) return [[name, (settings.person ?? settings.personal)?.replace?.(key) ?? null]];
      return erasing === 'anonymise' && settings.personal !== undefined ? [[name, settings.personal.replace?.(key) ?? null]] : [];
    }),
  );
}

async function deleteRows(tx: Db, model: Model, rows: readonly ErasedRow[]): Promise<void> {
  const { table, key } = statementsOf(model);
  for (const [name, { settings }] of Object.entries(model.columns)) {
    const { reference } = settings;
    // Rows of other batches that refer to these.
    if (reference === undefined || !settings.nullable || typeof reference.target === 'string' || reference.target().name !== model.name)
      continue;
    const other = reference.column ?? model.primaryKey[0] ?? '';
    const encode = statementsOf(model).column(other).encode;
    await tx.query(
      `update ${table} set ${q(name)} = null where ${q(name)} in (${rows.map((_, index) => `$${index + 1}`).join(', ')})`,
      rows.map((row) => encode(row[other])),
    );
  }
  const values: unknown[] = [];
  const keys = rows.map((row) => `(${key.map(({ name, encode }) => `$${values.push(encode(row[name]))}`).join(', ')})`);
  const columns = key.map(({ name }) => q(name)).join(', ');
  const list = key.length === 1 || tx.dialect === 'postgres' ? keys.join(', ') : `values ${keys.join(', ')}`;
  await tx.query(`delete from ${table} where (${columns}) in (${list})`, values);
}

/** Rows of live lists are logged with their prior values, for a day. */
export async function forgetChanges(tx: Db, model: Model, rows: readonly ErasedRow[]): Promise<void> {
  const values: unknown[] = [model.name];
  const key = rowKey(model);
  const keys = rows.map((row) => `$${values.push(rowKeyText(key, row[key.name]))}`);
  await tx.query(`delete from kit_changes where resource = $1 and key in (${keys.join(', ')})`, values);
}

export function keyOf(model: Model, row: ErasedRow): Record<string, unknown> {
  return Object.fromEntries(model.primaryKey.map((name) => [name, row[name]]));
}

/** The key of a row in JSON form, in the order of the key. */
export function jsonKey(model: Model, row: ErasedRow): unknown[] {
  return statementsOf(model).key.map(({ name, definition }) => toJson(definition, row[name]));
}

/** The key of a row as text: of several columns, with commas. */
export function keyText(model: Model, row: ErasedRow): string {
  return jsonKey(model, row).map(String).join();
}
