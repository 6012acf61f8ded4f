import type { AuditEntry, AuditSink } from '../../../auth/request/audit-sink.ts';
import { heldSubjects } from '../../../app/data/legal-holds.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { sealWithin } from './seal.ts';
import { findEntry, firstEntryOf, lastOlderThan, lockChain, readChain, removeThrough } from './store.ts';
import { walkChain, type ChainFault } from './walk-chain.ts';
import { type OptionRules, readOptions } from '../../../options/read-options.ts';
import { aDate, aFunction, anything, flag, required } from '../../../options/value-rule.ts';

/** The action of the entry that every pruning leaves. */
export const PRUNED = 'audit.pruned';
/** Entries per transaction: few enough that the sealer, which needs the same lock, does not wait long. */
const BATCH = 5000n;

export interface Pruning {
  /** Entries older than this are removed. */
  readonly before: Date;
  readonly by?: AuditEntry['actor'];
  /** Remove the entries although some of them were changed or are missing; the entry of the pruning says so. */
  readonly force?: boolean;
  readonly onProgress?: (removed: number) => void;
}

const rules: OptionRules<Pruning> = { before: required(aDate), by: anything, force: flag, onProgress: aFunction };

/**
 * Removes old entries from the start of the chain and returns how many. What is left stays verifiable: the chain stores the hash it now
 * starts from, and an entry of the chain, in the same transaction, says so. The chain has no gaps, so it ends before the first entry of a person or tenant under a legal hold. Refused when one of the entries was changed or is missing: the
 * evidence would be removed too, and the chain would look whole. Safe to repeat and to interrupt.
 */
export async function pruneAudit(db: Db, sink: AuditSink, pruning: Pruning): Promise<number> {
  const { before, by, force = false, onProgress } = readOptions('pruneAudit()', pruning, rules);
  const through = await throughUnheld(db, await lastOlderThan(db, before));
  const fault = await faultThrough(db, through);
  if (fault !== null && !force) throw new Error(`${fault.message} Nothing was removed: find out what happened, then prune with force.`);
  let removed = 0;
  for (;;) {
    const count = await db.transaction(
      (tx) => pruneBatch(tx, sink, through, { before, by: by ?? null, fault: fault?.message }),
      CONFLICT_RETRIES,
    );
    if (count === 0) return removed;
    removed += count;
    onProgress?.(removed);
  }
}

/** The last place before the first entry that a legal hold keeps. */
async function throughUnheld(db: Db, through: bigint): Promise<bigint> {
  const holds = await heldSubjects(db);
  if (holds.length === 0) return through;
  const first = await firstEntryOf(db, holds, through);
  return first === null ? through : first - 1n;
}

/** Before the transactions that remove, because reading takes long; in one snapshot, because another pruning may run. */
async function faultThrough(db: Db, through: bigint): Promise<ChainFault | null> {
  const read = async (tx: Db) => (await walkChain(tx, await readChain(tx), through)).fault;
  return db.isTransaction ? read(db) : db.transaction(read, { readOnly: true, isolation: 'repeatable read' });
}

interface Batch extends Pick<Pruning, 'before' | 'by'> {
  /** What is wrong with the entries that are removed. */
  readonly fault: string | undefined;
}

async function pruneBatch(tx: Db, sink: AuditSink, through: bigint, { before, by, fault }: Batch): Promise<number> {
  const chain = await lockChain(tx);
  const next = chain.pruned_through + BATCH;
  const seq = next < through ? next : through;
  if (seq <= chain.pruned_through) return 0;
  const last = await findEntry(tx, seq);
  if (last === null) throw new Error(`The audit chain is broken at entry ${seq}: run \`kit audit verify\` before pruning.`);
  const count = await removeThrough(tx, seq, last.hash);
  await sink.record(tx, [
    {
      actor: by ?? null,
      action: PRUNED,
      target_type: 'audit',
      target_id: String(seq),
      metadata: { before, removed: count, through_seq: String(seq), through_hash: last.hash, fault },
    },
  ]);
  // Not left to the sealer: the chain never starts from a pruning that is not in it.
  await sealWithin(tx);
  return count;
}
