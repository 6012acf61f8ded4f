import type { AnyTables, Db } from '../db/db.ts';
import { shownColumns, titleColumn, type ModelColumn } from './model-columns.ts';

/** What the records that a page refers to are called, by column and key. */
export type ReferenceTitles = ReadonlyMap<string, ReadonlyMap<string, string>>;

type Row = Readonly<Record<string, string | number | bigint | null>>;

/** One statement per column that refers to a model; a column whose target is only a table's name has no titles. */
export async function referenceTitles(
  db: Db,
  columns: readonly ModelColumn[],
  rows: readonly Readonly<Record<string, unknown>>[],
): Promise<ReferenceTitles> {
  const titles = new Map<string, ReadonlyMap<string, string>>();
  for (const { name, settings } of columns) {
    const { reference } = settings;
    if (reference === undefined || typeof reference.target === 'string') continue;
    const target = reference.target();
    const key = reference.column ?? target.primaryKey[0] ?? '';
    const title = titleColumn(shownColumns(target));
    const keys = [...new Set(rows.map((row) => row[name]).filter((value) => value !== null && value !== undefined))];
    if (title === undefined || title === key || keys.length === 0) continue;
    const found = (await db.tables<AnyTables>().selectFrom(target.name).select([key, title]).where(key, 'in', keys).execute()) as Row[];
    titles.set(name, new Map(found.map((row) => [String(row[key]), String(row[title] ?? '')])));
  }
  return titles;
}
