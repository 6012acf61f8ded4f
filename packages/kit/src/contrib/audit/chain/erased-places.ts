import type { Db } from '../../../db/engine/db.ts';
import { entriesOfAction, type ChainState } from './store.ts';

/** The action of the entry that every erasure leaves. It is never erased itself. */
export const ERASED = 'audit.erased';

/** Places in the chain whose values were erased. Asked in the order of the chain. */
export interface ErasedPlaces {
  has(seq: bigint): boolean;
}

/** `5`, or `5-9`. */
type PlaceRange = string;

/** Ascending places as an entry names them: `['5-9', '12']`. */
export function rangesOf(places: readonly bigint[]): PlaceRange[] {
  const ranges: { from: bigint; to: bigint }[] = [];
  for (const place of places) {
    const last = ranges.at(-1);
    if (last !== undefined && place === last.to + 1n) last.to = place;
    else ranges.push({ from: place, to: place });
  }
  return ranges.map(({ from, to }) => (from === to ? String(from) : `${from}-${to}`));
}

const RANGE = /^(\d{1,19})(?:-(\d{1,19}))?$/;

/** What was erased, by the entries of the chain. Each counts for earlier places only. */
export async function erasedPlaces(db: Db, chain: ChainState): Promise<ErasedPlaces> {
  const ranges: { readonly from: bigint; readonly to: bigint }[] = [];
  for await (const { seq, metadata } of entriesOfAction(db, ERASED, chain)) {
    const { places } = (metadata ?? {}) as { readonly places?: unknown };
    for (const range of Array.isArray(places) ? places : []) {
      const [, from, to = from] = RANGE.exec(String(range)) ?? [];
      if (from !== undefined && to !== undefined && BigInt(to) < seq) ranges.push({ from: BigInt(from), to: BigInt(to) });
    }
  }
  ranges.sort((one, other) => (one.from < other.from ? -1 : 1));
  let [next, reach] = [0, 0n];
  return {
    has(seq) {
      for (let range = ranges[next]; range !== undefined && range.from <= seq; range = ranges[(next += 1)])
        if (range.to > reach) reach = range.to;
      return seq <= reach;
    },
  };
}
