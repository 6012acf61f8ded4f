import { AsyncLocalStorage } from 'node:async_hooks';
import type { Database } from '../db/db.ts';
import type { SqlExecutor } from '../db/foreign/sql-executor.ts';

/**
 * Between two notifications: a worker that is woken claims everything that is due, so more of them tell it nothing. Each costs about 0.1 ms of CPU; a
 * job that is started right after another waits so long for its worker.
 */
export const WAKE_INTERVAL_MS = 4;

/** Notifications are sent between requests: their statements are not those of the request that asked for the first. */
const outsideOfRequests = AsyncLocalStorage.snapshot();

interface Channel {
  /** A notification was sent less than an interval ago. */
  isResting: boolean;
  /** Another was asked for since. */
  isWanted: boolean;
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
  if (channel.isResting) channel.isWanted = true;
  else outsideOfRequests(send, database, name, payload, channel);
}

function send(database: Database, name: string, payload: string, channel: Channel): void {
  channel.isResting = true;
  channel.isWanted = false;
  // Workers look by themselves too, and the database may have been closed.
  database.notify(database, name, payload).catch(() => undefined);
  setTimeout(() => {
    channel.isResting = false;
    if (channel.isWanted) send(database, name, payload, channel);
  }, WAKE_INTERVAL_MS);
}

function channelOf(database: Database, key: string): Channel {
  let ofDatabase = channels.get(database);
  if (ofDatabase === undefined) channels.set(database, (ofDatabase = new Map()));
  let channel = ofDatabase.get(key);
  if (channel === undefined) ofDatabase.set(key, (channel = { isResting: false, isWanted: false }));
  return channel;
}
