import type { Db } from '../../../db/engine/db.ts';
import { isAsRecorded, isErased, linkHash } from './chain.ts';
import { erasedPlaces, type ErasedPlaces } from './erased-places.ts';
import { readEntries, type ChainState, type StoredEntry } from './store.ts';

/** Entries per query: the whole chain is never in memory. */
const PAGE = 1000;

export interface ChainFault {
  /** The place in the chain; null when the fault is not about one entry. */
  readonly seq: bigint | null;
  readonly message: string;
}

export interface Walk {
  /** Entries that were read and are as recorded. */
  readonly checked: number;
  /** The hash of the last of them. */
  readonly hash: string;
  readonly fault: ChainFault | null;
}

/** Reads the chain from its start up to an entry; stops at the first that was changed, is missing, or does not follow the one before. */
export async function walkChain(
  db: Db,
  start: ChainState,
  through: bigint,
  onProgress?: (checked: number, total: number) => void,
): Promise<Walk> {
  let [seq, hash] = [start.pruned_through, start.pruned_hash];
  let checked = 0;
  const erased = await erasedPlaces(db, start);
  const total = Number(through - start.pruned_through);
  for (;;) {
    const entries = await readEntries(db, seq, through, PAGE);
    for (const entry of entries) {
      const fault = entryFault(entry, { seq, hash }, erased);
      if (fault !== null) return { checked, hash, fault };
      ({ seq, hash } = entry);
      checked += 1;
    }
    onProgress?.(checked, total);
    if (entries.length < PAGE) return { checked, hash, fault: null };
  }
}

function entryFault(
  entry: StoredEntry,
  { seq: previousSeq, hash: previousHash }: Pick<StoredEntry, 'seq' | 'hash'>,
  erased: ErasedPlaces,
): ChainFault | null {
  const fault = (seq: bigint, message: string) => ({ seq, message });
  if (entry.seq !== previousSeq + 1n) return fault(previousSeq + 1n, `Entry ${previousSeq + 1n} is missing.`);
  if (!isAsRecorded(entry)) return fault(entry.seq, `The content of entry ${entry.seq} was changed.`);
  if (isErased(entry) && !erased.has(entry.seq))
    return fault(entry.seq, `The values of entry ${entry.seq} are missing, but no entry says that they were erased.`);
  if (entry.previous_hash !== previousHash) return fault(entry.seq, `Entry ${entry.seq} does not follow the entry before it.`);
  if (linkHash(previousHash, entry.content_hash) !== entry.hash) return fault(entry.seq, `The hash of entry ${entry.seq} was changed.`);
  return null;
}
