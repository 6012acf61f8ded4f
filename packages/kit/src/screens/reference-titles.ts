import type { AdminContext } from '../app/admin/declaration.ts';
import { shownColumns, titleColumn, type ModelColumn } from '../app/admin/model-columns.ts';
import type { AdminAccess } from '../crud/staff/admin-access.ts';
import type { Model } from '../db/declare/model.ts';
import type { Where } from '../db/sql/where/where.ts';
import type { Plan } from './screen-plan.ts';
import { accessToModel, unlessRefused } from './staff-access.ts';

/** What the records that a page refers to are called, by column and key. */
export type ReferenceTitles = ReadonlyMap<string, ReadonlyMap<string, string>>;

/**
 * One statement per column that refers to a model, or to users; a column whose target is only a table's name has no titles. The rules of the target hold:
 * a row or a name that this staff member may not see has no title.
 */
export async function referenceTitles(
  context: AdminContext,
  columns: readonly ModelColumn[],
  items: readonly Readonly<Record<string, unknown>>[],
): Promise<ReferenceTitles> {
  const titles = new Map<string, ReadonlyMap<string, string>>();
  for (const { name, settings } of columns) {
    const { reference } = settings;
    if (reference === undefined) continue;
    const keys = [...new Set(items.map((item) => item[name]).filter((value) => value !== null && value !== undefined))];
    if (keys.length === 0) continue;
    if (reference.target === 'user' && context.linkTo('user', '') !== null)
      titles.set(name, await unlessRefused(() => context.titlesOf('user', keys.map(String)), new Map<string, string>()));
    if (typeof reference.target === 'string') continue;
    const target = reference.target() as Model;
    const key = reference.column ?? target.primaryKey[0] ?? '';
    titles.set(name, await unlessRefused(() => titlesOf(context, target, key, keys), new Map<string, string>()));
  }
  return titles;
}

async function titlesOf(context: AdminContext, target: Model, key: string, keys: readonly unknown[]): Promise<ReadonlyMap<string, string>> {
  const access = accessToModel(target, context);
  const isListed = context.linkTo(target.name, '') !== null;
  const resource = await access;
  // The list of these records says what they are called.
  if (isListed && (resource === null || !resource.isInSite || key === target.primaryKey[0]))
    return context.titlesOf(target.name, keys.map(String));
  if (resource === null) return new Map();
  const seen = await resource.columns();
  const title = titleColumn(shownColumns(target).filter(({ name }) => seen.has(name)));
  if (title === undefined || title === key) return new Map();
  const found = await resource.fieldsBy(key, keys, [title]);
  return new Map(found.map(({ value, item }) => [String(value), (item[title] as string | null) ?? '']));
}

/**
 * The ids of the records that have one of these titles, by title: two of a title that more have. Nothing where this staff member does not see the
 * title of every record, or it is no text that the database compares.
 */
export async function idsOfTitles(
  access: AdminAccess,
  { title, shown, keyName, words: { lookup = keyName, cells } }: Plan,
  titles: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const ids = new Map<string, readonly string[]>();
  const settings = shown.find(({ name }) => name === title)?.settings;
  const isCompared = settings?.kind === 'text' && cells?.[title] === undefined;
  if (!isCompared || !(await access.columns()).has(title)) return ids;
  const read = async (asked: readonly string[], limit: number): Promise<void> => {
    const found = await access.rows({ [title]: { in: asked } } as Where, limit);
    // A title that very many records have must not hide the others.
    if (found.length === limit && asked.length > 1) {
      const half = Math.ceil(asked.length / 2);
      await read(asked.slice(0, half), limit);
      return read(asked.slice(half), limit);
    }
    for (const row of found) {
      const text = row[title] as string;
      ids.set(text, [...(ids.get(text) ?? []), String(row[lookup])].slice(0, 2));
    }
  };
  const asked = [...new Set(titles)].filter((text) => !text.includes('\0'));
  if (asked.length > 0) await read(asked, 2 * asked.length + 2);
  return ids;
}
