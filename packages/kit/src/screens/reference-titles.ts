import type { AdminContext } from '../app/admin/declaration.ts';
import { shownColumns, titleColumn, type ModelColumn } from '../app/admin/model-columns.ts';
import type { Model } from '../db/declare/model.ts';
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
