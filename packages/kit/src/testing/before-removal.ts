import type { Dialect } from '../db/dialect.ts';

export type Inspection = (place: { readonly dialect: Dialect; readonly url: string }) => Promise<void>;

const inspections = new Set<Inspection>();

/** For the toolkit's own tests: `inspection` sees every test database of this process before it is gone. */
export function inspectBeforeRemoval(inspection: Inspection): void {
  inspections.add(inspection);
}

export async function inspect(place: Parameters<Inspection>[0]): Promise<void> {
  for (const inspection of inspections) await inspection(place);
}
