import type { Database } from '../../../db/engine/db.ts';
import type { DbLog } from '../../../db/log.ts';
import { DelayedWrite } from '../../../work/delayed-write.ts';
import { addUsage, deleteUsageBefore, type UsedHour } from '../rows/usage-store.ts';

export const HOUR_MS = 3_600_000;
/** Requests are counted in memory this long: what a process that is killed may lose. */
const FLUSH_AFTER_MS = 10_000;
/** Counts that wait while the database does not take writes; more keys than this are counted again when it does. */
const PENDING_MAX = 10_000;
/** Older counts are deleted. */
export const USAGE_DAYS = 90;
const DAY_MS = 24 * HOUR_MS;

/**
 * How many requests each key made, by the hour. `note` only counts in memory; a timer adds the counts to the table in one statement, and
 * `stop` adds what is left. Nothing here can slow down or fail a request.
 */
export class Usage {
  readonly #database: Database;
  readonly #log: DbLog;
  /** By key: the hour under way. */
  #counts = new Map<string, UsedHour>();
  /** Hours that are over, or could not be written. */
  #waiting: UsedHour[] = [];
  readonly #delayed = new DelayedWrite(FLUSH_AFTER_MS, () => this.#write());
  #cleanedDay = -1;

  constructor(database: Database, log: DbLog) {
    this.#database = database;
    this.#log = log;
  }

  note(keyId: string, now: Date): void {
    const nowMs = now.getTime();
    const hourMs = nowMs - (nowMs % HOUR_MS);
    const counted = this.#counts.get(keyId);
    if (counted !== undefined && counted.hourMs === hourMs) {
      counted.requests += 1;
      return;
    }
    if (counted !== undefined) this.#waiting.push(counted);
    if (counted !== undefined || this.#counts.size < PENDING_MAX) this.#counts.set(keyId, { keyId, hourMs, requests: 1 });
    this.#delayed.schedule();
  }

  /** Writes what was counted so far. Never rejects: what cannot be written is kept and written later. */
  flush(): Promise<void> {
    return this.#delayed.flush();
  }

  stop(): Promise<void> {
    return this.#delayed.stop();
  }

  async #write(): Promise<void> {
    const hours = [...this.#waiting, ...this.#counts.values()];
    if (hours.length === 0) return;
    this.#waiting = [];
    this.#counts = new Map();
    try {
      await addUsage(this.#database, hours);
      await this.#clean(Math.max(...hours.map(({ hourMs }) => hourMs)));
    } catch (error) {
      this.#waiting = [...hours, ...this.#waiting].slice(0, PENDING_MAX);
      this.#log.warn({ err: error, keys: hours.length }, 'could not count the use of API keys yet; requests are not affected');
      this.#delayed.schedule();
    }
  }

  /** Once a day, with the first counts of it. */
  async #clean(latestMs: number): Promise<void> {
    const day = Math.floor(latestMs / DAY_MS);
    if (day === this.#cleanedDay) return;
    this.#cleanedDay = day;
    await deleteUsageBefore(this.#database, new Date(latestMs - USAGE_DAYS * DAY_MS));
  }
}
