import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { linkHash } from './chain.ts';
import { inboxEntries, lockChain, moveToChain, tryLockChain, unsealed, type Placement } from './store.ts';
import { readOptions, requireArguments } from '../../../options/read-options.ts';
import { flag, queryable } from '../../../options/value-rule.ts';

// An entry is written to the inbox in the transaction of its change. After the commit the sealer moves it to the end of the chain. Writers
// share nothing, so on PostgreSQL their commits reach the disk together. One sealer works at a time: it locks the row of `audit_chain` until
// its transaction ends. A sealer that is killed leaves no trace, because the move and the new end of the chain are one transaction.

/** Entries per transaction: few enough that other writers (SQLite) and a pruning do not wait long. */
const BATCH = 1000;

/**
 * Seals the entries that are committed; returns how many. While another process seals, the work is left to it, unless `wait` is set: then
 * everything that was committed before the call is sealed when it returns.
 */
export async function sealEntries(db: Db, options: { readonly wait?: boolean } = {}): Promise<number> {
  const { wait = false } = readOptions('sealEntries()', options, { wait: flag });
  requireArguments('sealEntries()', { db }, { db: queryable });
  let sealed = 0;
  for (;;) {
    const count = await db.transaction((tx) => sealBatch(tx, wait), CONFLICT_RETRIES);
    sealed += count;
    if (count < BATCH) return sealed;
  }
}

/** Seals everything that a transaction sees, its own entries included. */
export async function sealWithin(tx: Db): Promise<void> {
  let count: number;
  do count = await sealBatch(tx, true);
  while (count === BATCH);
}

/**
 * For lists, so that they show everything that is committed. Where sealing fails, such as on a read-only replica, they show what is sealed;
 * the sealer reports failures.
 */
export async function sealBeforeReading(db: Db): Promise<void> {
  if ((await unsealed(db)).count > 0) await sealEntries(db, { wait: true }).catch(() => undefined);
}

async function sealBatch(tx: Db, wait: boolean): Promise<number> {
  const chain = wait ? await lockChain(tx) : await tryLockChain(tx);
  if (chain === null) return 0;
  // A statement of its own, after the lock: it sees what the previous sealer committed.
  const entries = await inboxEntries(tx, BATCH);
  if (entries.length === 0) return 0;
  const placements: Placement[] = [];
  let { hash } = chain;
  for (const { id, place, content_hash } of entries) {
    hash = linkHash(hash, content_hash);
    placements.push({ id, place, hash });
  }
  await moveToChain(tx, chain, placements);
  return entries.length;
}
