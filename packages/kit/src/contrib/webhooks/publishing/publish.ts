import { announceAfterCommit } from './announced-write.ts';
import { PublishRefused } from '../errors.ts';
import { aliasOf, checkedCall, checkedCalls, type CheckedCall, type PublishOptions } from './checked-call.ts';
import type { EventType } from './event-type.ts';
import { findByIdempotencyKey, type NewEvent, REMOVE_UNDELIVERED, WAKE_CHANNEL, writeEvents, type WrittenEvent } from './publish-store.ts';
import { runSteps, type SqlExecutor, type SqlSteps, type SyncSqlExecutor } from '../../../db/engine/foreign/sql-executor.ts';
import { candidatePatterns } from './subscription.ts';
import { writeTraced } from './traced-events.ts';
import { wakeAfterCommit } from '../../../work/wake-workers.ts';
import { requireArguments } from '../../../options/read-options.ts';
import { aList, queryable } from '../../../options/value-rule.ts';

export interface PublishedEvent {
  readonly id: string;
  /** False when the idempotency key had been used before. */
  readonly created: boolean;
  /** Endpoints the event will be sent to. */
  readonly deliveries: number;
}

/**
 * Stores an event and one pending delivery per endpoint it is for, in the caller's own transaction: they exist exactly
 * when the business change does. Nothing is sent from here. Everything that is wrong with the call is refused before
 * anything is written.
 *
 * @example
 * ```ts
 * await db.transaction(async (tx) => {
 *   await update(tx, orders, id, { status: 'paid' });
 *   await publish(tx, 'order.paid', { id }, { owner: user.id });
 * });
 * ```
 */
export async function publish<Data extends object>(
  tx: SqlExecutor,
  type: string | EventType<Data>,
  data: Data,
  options: PublishOptions,
): Promise<PublishedEvent> {
  const call = checkedCall(tx, type, data, options);
  const [published] = await writeTraced([call.event], (events) => stored(tx, events));
  return registerAfterCommit(tx, call, options, published as PublishedEvent);
}

/** One of the events of `publishMany`. */
export interface EventToPublish extends Omit<PublishOptions, 'using' | 'queue' | 'task'> {
  /** The name of the event, or a type declared with `eventType()`. */
  readonly type: string | EventType;
  /** What receivers get as `data`. */
  readonly data: object;
}

/**
 * `publish` for many events, in one statement (two on SQLite) however many there are. Everything that is wrong with one of them is refused before
 * any is written. The answer is in the order of the events.
 */
export async function publishMany(tx: SqlExecutor, events: readonly EventToPublish[]): Promise<PublishedEvent[]> {
  requireArguments('publishMany()', { tx, events }, { tx: queryable, events: aList });
  const calls = checkedCalls(events, ({ type, data, ...options }) => checkedCall(tx, type, data, options));
  const [call] = calls;
  if (call === undefined) return [];
  const all = calls.map(({ event }) => event);
  const published = await writeTraced(all, (traced) => stored(tx, traced));
  const reached = published.find(({ created, deliveries }) => created && deliveries > 0);
  if (reached !== undefined) registerAfterCommit(tx, call, {}, reached);
  return published;
}

async function stored(tx: SqlExecutor, events: readonly NewEvent[]): Promise<PublishedEvent[]> {
  const write = (): PublishedEvent[] | Promise<PublishedEvent[]> => runSteps(tx, storedOnceEach(tx, events));
  // One statement leaves everything or nothing, so on PostgreSQL there is nothing to remove.
  return tx.dialect === 'postgres' ? write() : writeOrRemove(tx, events, write);
}

async function writeOrRemove<R>(tx: SqlExecutor, events: readonly NewEvent[], write: () => R | Promise<R>): Promise<R> {
  try {
    return await write();
  } catch (error) {
    await removeUndelivered(tx, events);
    throw error;
  }
}

/** The transaction may have been committed between the two statements that SQLite needs: an event without deliveries must not stay. */
async function removeUndelivered(tx: SqlExecutor, events: readonly NewEvent[]): Promise<void> {
  try {
    await (tx.database ?? tx).query(REMOVE_UNDELIVERED, [JSON.stringify(events.map(({ id }) => id))]);
  } catch {
    // The error that is on its way says more.
  }
}

/**
 * The same for synchronous libraries whose transactions are functions that return no promise, such as better-sqlite3:
 * the event is written, or the refusal thrown, before it returns.
 */
export function publishSync<Data extends object>(
  tx: SyncSqlExecutor,
  type: string | EventType<Data>,
  data: Data,
  options: PublishOptions,
): PublishedEvent {
  // The types say so; JavaScript does not.
  if (typeof tx === 'object' && tx !== null && !('sync' in tx))
    throw new PublishRefused('not_synchronous', 'This library answers with promises: use `await publish(…)`.');
  const call = checkedCall(tx, type, data, options);
  const [published] = writeTraced([call.event], (events) => runSteps(tx, storedOnceEach(tx, events)) as PublishedEvent[]);
  return registerAfterCommit(tx, call, options, published as PublishedEvent);
}

function* storedOnceEach(tx: SqlExecutor, events: readonly NewEvent[]): SqlSteps<PublishedEvent[]> {
  const written = yield* writeAll(tx, events);
  const published: PublishedEvent[] = [];
  for (const [index, event] of events.entries()) published.push(yield* firstOf(tx, event, written[index] ?? NOT_WRITTEN));
  return published;
}

const NOT_WRITTEN: WrittenEvent = { created: false, deliveries: 0 };

function writeAll(tx: SqlExecutor, events: readonly NewEvent[]): SqlSteps<WrittenEvent[]> {
  return writeEvents(
    tx,
    events.map((event) => ({ event, patterns: candidatePatterns(event.type) })),
  );
}

/** The event that has the key may be pruned between the two statements, and another one may take it. */
const TRIES_MAX = 10;

/** The event, or the one that used its idempotency key before. */
function* firstOf(tx: SqlExecutor, event: NewEvent, attempt: WrittenEvent): SqlSteps<PublishedEvent> {
  let written = attempt;
  for (let tries = 0; !written.created && tries < TRIES_MAX; tries++) {
    const first = yield* findByIdempotencyKey(event);
    if (first?.data === event.data) return { id: first.id, ...NOT_WRITTEN };
    if (first !== null) break;
    [written = NOT_WRITTEN] = yield* writeAll(tx, [event]);
  }
  if (written.created) return { id: event.id, ...written };
  throw new PublishRefused('idempotency_key_reused', 'The idempotency key was used before for an event with other data.');
}

function registerAfterCommit(
  tx: SqlExecutor,
  { database, queue }: CheckedCall,
  { task }: PublishOptions,
  event: PublishedEvent,
): PublishedEvent {
  if (!event.created || tx.afterCommit === undefined) return event;
  if (event.deliveries > 0) {
    wakeAfterCommit(tx, WAKE_CHANNEL);
    announceAfterCommit(tx);
  }
  if (queue !== undefined) tx.afterCommit(() => queue.enqueue(event.id, aliasOf(tx) ?? 'default', { database, task }));
  return event;
}
