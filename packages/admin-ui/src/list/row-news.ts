import type { AdminRow } from '../api/shapes.ts';

/** What is different since the rows were shown. */
export interface RowNews {
  readonly added: number;
  /** Also those that are no longer in the list. */
  readonly changed: number;
}

/** Rows at the end of a page come and go with those before them: they are no news. */
export function rowNews(shown: readonly AdminRow[], now: readonly AdminRow[]): RowNews {
  const before = new Map(shown.map((row) => [row.id, row.values]));
  const current = new Set(now.map(({ id }) => id));
  const added = now.slice(0, now.findLastIndex(({ id }) => before.has(id)) + 1).filter(({ id }) => !before.has(id));
  const last = shown.findLastIndex(({ id }) => current.has(id));
  // Where a page is another one altogether, all of it was changed.
  const gone = (last < 0 ? shown : shown.slice(0, last)).filter(({ id }) => !current.has(id));
  const other = now.filter(({ id, values }) => before.has(id) && JSON.stringify(before.get(id)) !== JSON.stringify(values));
  return { added: added.length, changed: gone.length + other.length };
}

/** How many rows at the top were not there before; none when that is all of them. */
export function leading(shown: readonly AdminRow[], now: readonly AdminRow[]): number {
  const known = new Set(shown.map(({ id }) => id));
  return Math.max(
    0,
    now.findIndex(({ id }) => known.has(id)),
  );
}

/** `3 changed, 1 new: show`; empty: there is nothing to show. */
export function newsText({ added, changed }: RowNews): string {
  const parts = [...(changed > 0 ? [`${changed} changed`] : []), ...(added > 0 ? [`${added} new`] : [])];
  return parts.length === 0 ? '' : `${parts.join(', ')}: show`;
}
