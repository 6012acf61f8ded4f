import { useEffect, useState } from 'react';
import type { AdminRow } from '../api/shapes.ts';
import { changedCells, type IsChanged } from './changed-cells.ts';

/** As long as a person needs to find what changed. */
const MARKED_MS = 10_000;

const NONE: ReadonlySet<string> = new Set();

/** Marks for a while the cells of a view whose values changed since they were shown. `view`: another one begins without marks. */
export function useChangedCells(
  view: string,
  rows: readonly AdminRow[] | undefined,
): { readonly isChanged: IsChanged; readonly count: number } {
  const [shown, setShown] = useState<{
    readonly view: string;
    readonly rows: readonly AdminRow[];
    readonly cells: ReadonlySet<string>;
  } | null>(null);
  if (rows !== undefined && shown?.rows !== rows)
    setShown({ view, rows, cells: shown?.view === view ? changedCells(shown.rows, rows, shown.cells) : NONE });
  const cells = shown?.view === view ? shown.cells : NONE;
  useEffect(() => {
    if (cells.size === 0) return undefined;
    const timer = window.setTimeout(() => setShown((current) => current && { ...current, cells: NONE }), MARKED_MS);
    return () => window.clearTimeout(timer);
  }, [cells]);
  return { isChanged: (id, column) => cells.has(`${column} ${id}`), count: new Set([...cells].map(idOf)).size };
}

function idOf(cell: string): string {
  return cell.slice(cell.indexOf(' ') + 1);
}
