import type { AdminContext } from '../../app/admin/declaration.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Model } from '../../db/declare/model.ts';
import { quoteName } from '../../db/declare/names.ts';
import { shownColumns, titleColumn, type ModelColumn } from '../../app/admin/model-columns.ts';
import { accessToModel, unlessRefused } from '../staff/staff-access.ts';

/** What the records that a page refers to are called, by column and key. */
export type ReferenceTitles = ReadonlyMap<string, ReadonlyMap<string, string>>;

type Row = Readonly<Record<string, string | number | bigint | null>>;

/**
 * One statement per column that refers to a model; a column whose target is only a table's name has no titles. The rules of the target hold:
 * a row or a name that this member of staff may not see has no title.
 */
export async function referenceTitles(
  context: AdminContext,
  db: Db,
  columns: readonly ModelColumn[],
  rows: readonly Readonly<Record<string, unknown>>[],
): Promise<ReferenceTitles> {
  const titles = new Map<string, ReadonlyMap<string, string>>();
  for (const { name, settings } of columns) {
    const { reference } = settings;
    if (reference === undefined || typeof reference.target === 'string') continue;
    const target = reference.target() as Model;
    const key = reference.column ?? target.primaryKey[0] ?? '';
    const keys = [...new Set(rows.map((row) => row[name]).filter((value) => value !== null && value !== undefined))];
    if (keys.length === 0) continue;
    titles.set(name, await unlessRefused(() => titlesOf(context, db, target, key, keys), new Map<string, string>()));
  }
  return titles;
}

async function titlesOf(
  context: AdminContext,
  db: Db,
  target: Model,
  key: string,
  keys: readonly unknown[],
): Promise<ReadonlyMap<string, string>> {
  const access = await accessToModel(target, context);
  // A module shows the table by a list of its own, which says what its records are called.
  if (access !== null && !access.isInSite && context.linkTo(target.name, '') !== null)
    return context.titlesOf(target.name, keys.map(String));
  const seen = await access?.columns();
  const title = titleColumn(shownColumns(target).filter(({ name }) => seen === undefined || seen.has(name)));
  if (title === undefined || title === key) return new Map();
  const parameters: unknown[] = [];
  const condition = (await access?.condition(db.dialect, 't', parameters, 'any')) ?? true;
  if (condition === false) return new Map();
  const listed = keys.map((each) => `$${parameters.push(each)}`).join(', ');
  const [keyName, titleName] = [`t.${quoteName(key)}`, `t.${quoteName(title)}`];
  const found = await db.query<Row>(
    `select ${keyName}, ${titleName} from ${quoteName(target.name)} t where ${keyName} in (${listed})${condition === true ? '' : ` and (${condition})`}`,
    parameters,
  );
  return new Map(found.map((row) => [String(row[key]), String(row[title] ?? '')]));
}
