import { AsyncLocalStorage } from 'node:async_hooks';
import type { Database } from '../db/engine/db.ts';
import type { SqlExecutor } from '../db/engine/foreign/sql-executor.ts';

/**
 * Between two notifications: a worker that is woken claims everything that is due, so more of them tell it nothing. Each costs about 0.1 ms of CPU; a
 * job that is started right after another waits so long for its worker.
 */
export const WAKE_INTERVAL_MS = 4;

/**
 * The same while work arrives faster than a worker is woken: a worker then has work to go on with, and notifications every 4 ms took a tenth of the
 * rate at which one connection publishes.
 */
export const BUSY_WAKE_INTERVAL_MS = 16;
/** From this rate of wake-ups on, the next interval is twice as long. Below it, a caller that waits for its job is served as soon as before. */
const BUSY_WAKE_UPS_PER_MS = 0.5;

/** The interval that follows one in which so many wake-ups were asked for. */
export function nextWakeInterval(intervalMs: number, wakeUps: number): number {
  return wakeUps < intervalMs * BUSY_WAKE_UPS_PER_MS ? WAKE_INTERVAL_MS : Math.min(2 * intervalMs, BUSY_WAKE_INTERVAL_MS);
}

/** Notifications are sent between requests: their statements are not those of the request that asked for the first. */
const outsideOfRequests = AsyncLocalStorage.snapshot();

interface Channel {
  /** A notification was sent less than an interval ago. */
  isResting: boolean;
  /** How often another was asked for since. */
  wanted: number;
}

const channels = new WeakMap<Database, Map<string, Channel>>();

/** Whether {@link wakeAfterCommit} wakes the workers. Else the statement that makes the work must do it, at the price it names. */
export function canWakeAfterCommit(tx: SqlExecutor): boolean {
  return tx.afterCommit !== undefined && tx.database !== undefined;
}

/**
 * Wakes the workers once the transaction has committed, and not in the transaction: PostgreSQL lets transactions that notify commit one at a
 * time, each until its commit is on disk.
 */
export function wakeAfterCommit(tx: SqlExecutor, channel: string, payload = ''): void {
  const { database } = tx;
  if (database === undefined) return;
  try {
    tx.afterCommit?.(() => wakeWorkers(database, channel, payload));
  } catch {
    // The transaction has ended meanwhile: a worker finds the work by itself.
  }
}

/**
 * Tells the workers that listen on a channel that there is work: at once, then at most every few milliseconds with the same payload. A
 * notification that is lost, with the process that was to send it, costs the workers one poll interval.
 */
export function wakeWorkers(database: Database, name: string, payload = ''): void {
  const channel = channelOf(database, `${name} ${payload}`);
  if (channel.isResting) channel.wanted += 1;
  else outsideOfRequests(send, database, name, payload, channel, WAKE_INTERVAL_MS);
}

function send(database: Database, name: string, payload: string, channel: Channel, intervalMs: number): void {
  channel.isResting = true;
  channel.wanted = 0;
  // Workers look by themselves too, and the database may have been closed.
  database.notify(database, name, payload).catch(() => undefined);
  setTimeout(() => {
    channel.isResting = false;
    if (channel.wanted > 0) send(database, name, payload, channel, nextWakeInterval(intervalMs, channel.wanted));
  }, intervalMs);
}

function channelOf(database: Database, key: string): Channel {
  let ofDatabase = channels.get(database);
  if (ofDatabase === undefined) channels.set(database, (ofDatabase = new Map()));
  let channel = ofDatabase.get(key);
  if (channel === undefined) ofDatabase.set(key, (channel = { isResting: false, wanted: 0 }));
  return channel;
}
