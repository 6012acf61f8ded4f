import type { AnyCrudOptions } from './crud-options.ts';

/** Operations that do to many rows what another does to one, or show the rows of the list in another way. */
const SAME_BY_OTHER_MEANS: ReadonlyMap<string, readonly string[]> = new Map([
  ['query', ['list']],
  ['queryAlias', ['list']],
  ['export', ['list']],
  ['bulkCreate', ['create']],
  ['bulkUpdate', ['partialUpdate']],
  ['bulkDestroy', ['destroy']],
  ['import', ['create']],
]);

/** The operations whose permissions an operation needs besides its own: who may not delete one row may not delete a hundred. */
export function impliedBy(name: string, options: AnyCrudOptions): readonly string[] {
  const implied = SAME_BY_OTHER_MEANS.get(name) ?? [];
  return name === 'import' && options.import?.by !== undefined ? [...implied, 'partialUpdate'] : implied;
}

/** The operations that need the permission of this one besides their own. */
export function doingTheSameAs(field: string, options: AnyCrudOptions): string[] {
  return [...SAME_BY_OTHER_MEANS.keys()].filter((name) => impliedBy(name, options).includes(field));
}
