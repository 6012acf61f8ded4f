import { toJson } from '../declare/column-json.ts';
import { quoteName as q } from '../declare/names.ts';
import type { Db } from '../engine/db.ts';
import { dataKeysOf, revealed } from '../rows/reveal.ts';
import { keysetOf } from '../sql/keyset/keyset.ts';
import { type ModelColumn, statementsOf } from '../sql/model-statements.ts';
import { type ErasedRow, jsonKey } from './erase-rows.ts';
import type { SubjectTable } from './subject.ts';
import type { SubjectPlan } from './subject-plan.ts';
import { bindOnce, rowsSql } from './subject-where.ts';

const BATCH = 500;

/** Rows of one table, as they are in an export. */
export interface ExportedRows {
  readonly table: string;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** The same rows as code has them, with every column: for what belongs to them and is in no table. */
  readonly stored: readonly ErasedRow[];
}

/** Every row of a person or tenant, a batch after the other. Secrets and digests are left out; encrypted columns that are personal are readable. */
export async function* subjectRows(db: Db, { tables }: SubjectPlan, id: string): AsyncGenerator<ExportedRows> {
  for (const table of tables.toReversed()) yield* rowsOfTable(db, table, id);
}

async function* rowsOfTable(db: Db, table: SubjectTable, id: string): AsyncGenerator<ExportedRows> {
  const { model } = table;
  const statements = statementsOf(model);
  const keyset = keysetOf(model, model.primaryKey, 'r');
  const exported = statements.columns.filter(isExported);
  const columns = statements.columns.map(({ name }) => `r.${q(name)}`).join(', ');
  for (let after: readonly unknown[] | null = null; ;) {
    const values: unknown[] = [];
    const condition = rowsSql(table, [id], 'r', bindOnce(values));
    if (condition === undefined) return;
    const next: string = after === null ? '' : ` and ${keyset.append(db.dialect, { position: after, backwards: false }, values)}`;
    const rows: ErasedRow[] = await db.query(
      `select ${columns} from ${statements.table} r where ${condition}${next} order by ${keyset.orderSql(db.dialect)} limit $${values.push(BATCH)}`,
      values,
    );
    if (rows.length > 0)
      yield {
        table: model.name,
        rows: rows.map((row) => Object.fromEntries(exported.map((column) => [column.name, exportedValue(db, table, column, row)]))),
        stored: rows,
      };
    const last = rows.at(-1);
    if (last === undefined || rows.length < BATCH) return;
    after = jsonKey(model, last);
  }
}

/** Secrets, digests and values of one use are nobody's data. */
export function isExported({ settings }: Pick<ModelColumn, 'settings'>): boolean {
  if (settings.searchOf !== undefined || settings.internal === true) return false;
  return !settings.sensitive || (settings.encrypted !== undefined && settings.personal !== undefined);
}

function exportedValue(db: Db, { model }: SubjectTable, { name, settings, definition }: ModelColumn, row: ErasedRow): unknown {
  if (settings.encrypted === undefined) return toJson(definition, row[name]) ?? null;
  const statements = statementsOf(model);
  const plain = revealed(dataKeysOf(db), statements, statements.column(name), row, row[name]);
  return toJson({ kind: settings.kind }, plain) ?? null;
}
