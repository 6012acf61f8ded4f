import type { Database } from '../../../db/engine/db.ts';
import type { DbLog } from '../../../db/log.ts';
import { DelayedWrite } from '../../../work/delayed-write.ts';
import { writeLastUsed, type PendingUse } from '../rows/store.ts';

/** How fresh `last_used_at` is: a busy key is written once in this time, not once a request. */
export const LAST_USED_EVERY_MS = 60_000;
/** Uses are collected this long, so that many keys cost one statement. */
const FLUSH_AFTER_MS = 1000;
/** While the database does not take writes, at most this many keys wait. */
const PENDING_MAX = 10_000;

/** A used key, as verification saw the row. */
export interface UsedKey {
  readonly id: string;
  readonly last_used_at: Date | null;
  readonly previous_last_used_at: Date | null;
}

/**
 * Writes when keys were last used, behind the requests: `note` only remembers, a timer writes, and `stop` writes what is left. Nothing
 * here can slow down or fail a request. The statement itself also refuses a write within the minute, so several processes together
 * still write once.
 */
export class LastUsed {
  readonly #database: Database;
  readonly #log: DbLog;
  readonly #noted = new Map<string, number>();
  #pending = new Map<string, PendingUse>();
  readonly #delayed = new DelayedWrite(FLUSH_AFTER_MS, () => this.#write());

  constructor(database: Database, log: DbLog) {
    this.#database = database;
    this.#log = log;
  }

  note(use: UsedKey, isPrevious: boolean, now: Date): void {
    const nowMs = now.getTime();
    const usedAt = this.#isDue(use.id, use.last_used_at, nowMs) ? now : null;
    const previousUsedAt = isPrevious && this.#isDue(`previous:${use.id}`, use.previous_last_used_at, nowMs) ? now : null;
    if (usedAt === null && previousUsedAt === null) return;
    const waiting = this.#pending.get(use.id);
    if (waiting !== undefined) {
      waiting.usedAt ??= usedAt;
      waiting.previousUsedAt ??= previousUsedAt;
    } else if (this.#pending.size < PENDING_MAX) this.#pending.set(use.id, { usedAt, previousUsedAt });
    this.#delayed.schedule();
  }

  /** Writes what was noted so far. Never rejects: a use that cannot be written is noted again by the key's next request. */
  flush(): Promise<void> {
    return this.#delayed.flush();
  }

  stop(): Promise<void> {
    return this.#delayed.stop();
  }

  #isDue(slot: string, storedAt: Date | null, nowMs: number): boolean {
    if (storedAt !== null && nowMs - storedAt.getTime() < LAST_USED_EVERY_MS) return false;
    const notedMs = this.#noted.get(slot);
    if (notedMs !== undefined && nowMs - notedMs < LAST_USED_EVERY_MS) return false;
    this.#noted.set(slot, nowMs);
    return true;
  }

  async #write(): Promise<void> {
    if (this.#pending.size === 0) return;
    const uses = this.#pending;
    this.#pending = new Map();
    try {
      await writeLastUsed(this.#database, uses, LAST_USED_EVERY_MS);
      this.#forgetOld(uses);
    } catch (error) {
      for (const id of uses.keys()) {
        this.#noted.delete(id);
        this.#noted.delete(`previous:${id}`);
      }
      this.#log.warn({ err: error, keys: uses.size }, 'could not write the last-used times of API keys; requests are not affected');
    }
  }

  #forgetOld(uses: ReadonlyMap<string, PendingUse>): void {
    let latestMs = 0;
    for (const { usedAt, previousUsedAt } of uses.values()) {
      latestMs = Math.max(latestMs, usedAt?.getTime() ?? 0, previousUsedAt?.getTime() ?? 0);
    }
    for (const [slot, notedMs] of this.#noted) if (latestMs - notedMs >= LAST_USED_EVERY_MS) this.#noted.delete(slot);
  }
}
