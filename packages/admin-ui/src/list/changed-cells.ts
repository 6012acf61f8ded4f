import type { AdminRow } from '../api/shapes.ts';

export type IsChanged = (id: string, column: string) => boolean;

/** The cells, as `column id`, whose values are others than before, and those that were marked and are still there. */
export function changedCells(before: readonly AdminRow[], now: readonly AdminRow[], marked: ReadonlySet<string>): ReadonlySet<string> {
  const known = new Map(before.map((row) => [row.id, row.values]));
  const cells = new Set<string>();
  for (const { id, values } of now) {
    const was = known.get(id);
    if (was === undefined) continue;
    for (const [column, value] of Object.entries(values)) {
      const cell = `${column} ${id}`;
      if (marked.has(cell) || JSON.stringify(value) !== JSON.stringify(was[column])) cells.add(cell);
    }
  }
  return cells;
}
