import type { ReactNode } from 'react';
import type { AdminColumn, AdminResourceShape, AdminRow } from '../api/shapes.ts';
import type { IsChanged } from './changed-cells.ts';

/** How a page of a list is drawn, as a table or as cards. */
export interface ListRows {
  readonly resource: AdminResourceShape;
  readonly rows: readonly AdminRow[];
  readonly columns: readonly AdminColumn[];
  readonly sort: string;
  readonly onSort: (sort: string) => void;
  /** Rows of another list are on their way out: nothing is selected among them. */
  readonly isStale: boolean;
  readonly empty: ReactNode;
  /** Cells whose values changed since they were shown. */
  readonly isChanged: IsChanged;
  /** Absent: nothing can be done with a selection. */
  readonly selection?: Selection | undefined;
}

interface Selection {
  readonly has: (id: string) => boolean;
  /** Of the rows on this page. */
  readonly onChange: (rows: readonly AdminRow[]) => void;
}

/** A click on a heading sorts, the next one turns the order around. */
export function nextSort(sort: string, name: string): string {
  return sort === name ? `-${name}` : name;
}

/** The selected rows of the page after one of them was clicked; with `from`, all between the two get its new state. */
export function toggled({ rows, selection }: ListRows, row: AdminRow, isSelected: boolean, from: string | null): readonly AdminRow[] {
  const [a, b] = [rows.findIndex(({ id }) => id === from), rows.indexOf(row)];
  const changed = new Set((a < 0 ? [row] : rows.slice(Math.min(a, b), Math.max(a, b) + 1)).map(({ id }) => id));
  return rows.filter(({ id }) => (changed.has(id) ? isSelected : selection?.has(id) === true));
}
