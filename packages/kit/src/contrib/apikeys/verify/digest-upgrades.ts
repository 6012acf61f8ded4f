import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Database } from '../../../db/engine/db.ts';
import type { DbLog } from '../../../db/log.ts';
import { DelayedWrite } from '../../../work/delayed-write.ts';
import { limitLockWait } from '../../../work/lock-patience.ts';
import { type DigestUpgrade, replaceDigest } from '../rows/store.ts';

const FLUSH_AFTER_MS = 1000;
/** While the database does not take writes, at most this many keys wait. */
const PENDING_MAX = 10_000;

/**
 * Moves keys from the previous pepper to the current one, behind the requests: only a request has the secret that a digest is made of. Nothing
 * here can slow down or fail a request; what cannot be written is noted again by the key's next use.
 */
export class DigestUpgrades {
  readonly #database: Database;
  readonly #log: DbLog;
  #pending = new Map<string, DigestUpgrade>();
  readonly #delayed = new DelayedWrite(FLUSH_AFTER_MS, () => this.#write());

  constructor(database: Database, log: DbLog) {
    this.#database = database;
    this.#log = log;
  }

  note(upgrade: DigestUpgrade): void {
    if (this.#pending.size >= PENDING_MAX) return;
    this.#pending.set(upgrade.id, upgrade);
    this.#delayed.schedule();
  }

  flush(): Promise<void> {
    return this.#delayed.flush();
  }

  stop(): Promise<void> {
    return this.#delayed.stop();
  }

  async #write(): Promise<void> {
    const upgrades = this.#pending;
    this.#pending = new Map();
    for (const upgrade of upgrades.values()) {
      try {
        await this.#database.transaction(async (tx) => {
          await limitLockWait(tx);
          await replaceDigest(tx, upgrade);
        }, CONFLICT_RETRIES);
      } catch (error) {
        this.#log.warn({ err: error, key: upgrade.id }, 'could not write an API key under the new pepper; requests are not affected');
      }
    }
  }
}
