import type { AdminListQuery } from './declaration.ts';
import type { AdminColumn, AdminPage, AdminRow, AdminState, AdminValue } from './shapes.ts';

/** A list that fits on one page because a declaration bounds it: searched by title and sorted by any column that is `sortable`. */
export function shortList(items: readonly AdminRow[], { search, sort }: Pick<AdminListQuery, 'search' | 'sort'>): AdminPage {
  const wanted = search?.toLowerCase() ?? '';
  const found = items.filter(({ title }) => title.toLowerCase().includes(wanted));
  const sorted =
    sort === null ? found : found.toSorted((a, b) => compare(a.values[sort.column], b.values[sort.column]) * (sort.descending ? -1 : 1));
  return { items: sorted, count: sorted.length, next: null };
}

/** All of them can be sorted, but those whose values are lists. */
export function shortColumns(columns: readonly AdminColumn[]): readonly AdminColumn[] {
  const order = ({ kind }: AdminColumn) =>
    kind === 'chips' ? { sortNote: 'Cannot be sorted: each value is a list or a structure.' } : { sortable: true };
  return columns.map((column) => ({ ...column, ...order(column) }));
}

function compare(a: AdminValue | undefined, b: AdminValue | undefined): number {
  const [left, right] = [comparable(a), comparable(b)];
  if (typeof left === 'number' && typeof right === 'number') return left - right;
  const [first, second] = [String(left ?? ''), String(right ?? '')];
  return first < second ? -1 : first > second ? 1 : 0;
}

function comparable(value: AdminValue | undefined): string | number | null {
  if (typeof value === 'string' || typeof value === 'number') return value;
  return (value as Partial<AdminState> | null | undefined)?.value ?? null;
}
