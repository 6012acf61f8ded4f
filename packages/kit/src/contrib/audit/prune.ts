import type { AuditEntry, AuditSink } from '../../app/registry.ts';
import type { Db } from '../../db/db.ts';
import { findEntry, lastOlderThan, readChain, removeThrough } from './store.ts';

/** The action of the entry that every pruning leaves. */
export const PRUNED = 'audit.pruned';
/** Entries per transaction: few enough that other writers, who wait for the end of the chain, do not wait long. */
const BATCH = 5000n;

export interface Pruning {
  /** Entries older than this go. */
  readonly before: Date;
  readonly by?: AuditEntry['actor'];
  readonly onProgress?: (removed: number) => void;
}

/**
 * Removes old entries from the start of the chain. What is left stays verifiable: the chain remembers the hash it now starts from, and an
 * entry of the chain, in the same transaction, says so. Answers how many are gone. Safe to repeat and to interrupt.
 */
export async function pruneAudit(db: Db, sink: AuditSink, { before, by, onProgress }: Pruning): Promise<number> {
  const through = await lastOlderThan(db, before);
  let removed = 0;
  for (;;) {
    const count = await db.transaction((tx) => pruneBatch(tx, sink, through, { before, by: by ?? null }));
    if (count === 0) return removed;
    removed += count;
    onProgress?.(removed);
  }
}

async function pruneBatch(tx: Db, sink: AuditSink, through: bigint, { before, by }: Pruning): Promise<number> {
  const chain = await readChain(tx, { hold: true });
  const next = chain.pruned_through + BATCH;
  const seq = next < through ? next : through;
  if (seq <= chain.pruned_through) return 0;
  const last = await findEntry(tx, 'seq', seq);
  if (last === null) throw new Error(`The audit chain is broken at entry ${seq}: run \`kit audit verify\` before pruning.`);
  const count = await removeThrough(tx, seq, last.hash);
  await sink.record(tx, {
    actor: by ?? null,
    action: PRUNED,
    target_type: 'audit',
    target_id: String(seq),
    metadata: { before, removed: count, through_seq: String(seq), through_hash: last.hash },
  });
  return count;
}
