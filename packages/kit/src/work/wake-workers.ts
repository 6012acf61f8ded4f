import { AsyncLocalStorage } from 'node:async_hooks';
import type { Database } from '../db/db.ts';

/** Between two notifications: a worker that is woken claims everything that is due, so more of them tell it nothing. */
export const WAKE_INTERVAL_MS = 10;

/** Notifications are sent between requests: their statements are not those of the request that asked for the first. */
const outsideOfRequests = AsyncLocalStorage.snapshot();

interface Channel {
  /** A notification was sent less than an interval ago. */
  isResting: boolean;
  /** Another was asked for since. */
  isWanted: boolean;
}

const channels = new WeakMap<Database, Map<string, Channel>>();

/**
 * Tells the workers that listen on a channel that there is work: at once, then at most every 10 ms. For use after a commit, and not in the
 * transaction: PostgreSQL lets transactions that notify commit one at a time, each until its commit is on disk. A notification that is lost,
 * with the process that was to send it, costs the workers one poll interval.
 */
export function wakeWorkers(database: Database, name: string): void {
  const channel = channelOf(database, name);
  if (channel.isResting) channel.isWanted = true;
  else outsideOfRequests(send, database, name, channel);
}

function send(database: Database, name: string, channel: Channel): void {
  channel.isResting = true;
  channel.isWanted = false;
  // Workers look by themselves too, and the database may have been closed.
  database.notify(database, name).catch(() => undefined);
  setTimeout(() => {
    channel.isResting = false;
    if (channel.isWanted) send(database, name, channel);
  }, WAKE_INTERVAL_MS);
}

function channelOf(database: Database, name: string): Channel {
  let ofDatabase = channels.get(database);
  if (ofDatabase === undefined) channels.set(database, (ofDatabase = new Map()));
  let channel = ofDatabase.get(name);
  if (channel === undefined) ofDatabase.set(name, (channel = { isResting: false, isWanted: false }));
  return channel;
}
