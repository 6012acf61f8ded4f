import type { Db } from '../../../db/db.ts';
import { uuidv7 } from '../../../db/uuidv7.ts';
import { systemClock } from '../../../db/clock.ts';
import { parseAudience, type AudienceOptions } from './audience.ts';
import { isSchema } from '../../../http/schema.ts';
import { PublishRefused } from '../errors.ts';
import { checkedData, type EventType } from './event-type.ts';
import { AUDIENCE_KEY_LENGTH_MAX, EVENT_KEY_LENGTH_MAX } from '../models.ts';
import { DEFAULT_PAYLOAD_BYTES_MAX } from '../options.ts';
import {
  findByIdempotencyKey,
  REMOVE_UNDELIVERED,
  sendEvent,
  WAKE_CHANNEL,
  writeEvent,
  writeEvents,
  type NewEvent,
  type WrittenEvent,
} from './publish-store.ts';
import { runSteps, type SqlExecutor, type SqlSteps, type SyncSqlExecutor } from '../../../db/foreign/sql-executor.ts';
import { candidatePatterns, EVENT_TYPE_LENGTH_MAX, isEventType } from '../endpoints/subscription.ts';
import type { DeliveryTask, TaskQueue } from './task-queue.ts';
import { writeTraced } from './traced-events.ts';
import { findWebhooks } from '../webhooks.ts';
import { wakeAfterCommit, wakeWorkers } from '../../../work/wake-workers.ts';
import { requireArguments } from '../../../options/read-options.ts';
import { aList, queryable } from '../../../options/value-rule.ts';

export interface PublishOptions extends AudienceOptions {
  /** The alias of the database that the transaction must belong to; refused when it is another. */
  readonly using?: string | undefined;
  /** Deliveries to one endpoint with the same key are sent strictly one after the other, in the order they were published. */
  readonly orderingKey?: string | undefined;
  /** Publishing the same type to the same audience again under this key writes nothing and returns the first event. */
  readonly idempotencyKey?: string | undefined;
  /** Where to announce the event for immediate delivery, after the commit. */
  readonly queue?: TaskQueue | undefined;
  /** What the queue runs with the event's id and the database alias. Without `queue` it is called in this process, after the commit. */
  readonly task?: DeliveryTask | undefined;
}

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
 */
export async function publish<Data extends object>(
  tx: SqlExecutor,
  type: string | EventType<Data>,
  data: Data,
  options: PublishOptions,
): Promise<PublishedEvent> {
  const call = checkedCall(tx, type, data, options);
  return registerAfterCommit(tx, call, options, await writeTraced([call.event], ([event]) => stored(tx, event as NewEvent)));
}

/** One of the events of `publishMany`. */
export interface EventToPublish extends Omit<PublishOptions, 'using' | 'queue' | 'task'> {
  readonly type: string | EventType;
  readonly data: object;
}

/**
 * `publish` for many events, in one statement (two on SQLite) however many there are. Everything that is wrong with one of them is refused before
 * any is written. The answer is in the order of the events.
 */
export async function publishMany(tx: SqlExecutor, events: readonly EventToPublish[]): Promise<PublishedEvent[]> {
  requireArguments('publishMany()', { tx, events }, { tx: queryable, events: aList });
  const calls = events.map(({ type, data, ...options }) => checkedCall(tx, type, data, options));
  const [call] = calls;
  if (call === undefined) return [];
  const all = calls.map(({ event }) => event);
  const published = await writeTraced(all, async (traced) =>
    traced.length === 1 ? [await stored(tx, traced[0] as NewEvent)] : storedTogether(tx, traced),
  );
  const reached = published.find(({ created, deliveries }) => created && deliveries > 0);
  if (reached !== undefined) registerAfterCommit(tx, call, {}, reached);
  return published;
}

/**
 * `publishMany` for changes that the toolkit announces, in its own transactions and without idempotency keys. No answer is needed, so on PostgreSQL a
 * single event goes out with the next statement or with the commit, a round trip less. When it cannot be written, they fail and nothing is saved.
 */
export async function publishWithCommit(tx: Db, events: readonly Omit<EventToPublish, 'idempotencyKey'>[]): Promise<void> {
  const [only] = events;
  if (tx.dialect !== 'postgres' || only === undefined || events.length > 1) {
    await publishMany(tx, events);
    return;
  }
  const { type, data, ...options } = only;
  const { event } = checkedCall(tx, type, data, options);
  let hasDeliveries = false;
  await writeTraced([event], ([traced]) =>
    sendEvent(tx, traced as NewEvent, candidatePatterns(event.type), (isReached) => (hasDeliveries = isReached)),
  );
  tx.afterCommit(() => {
    if (hasDeliveries) wakeWorkers(tx.database, WAKE_CHANNEL);
  });
}

function stored(tx: SqlExecutor, event: NewEvent): PublishedEvent | Promise<PublishedEvent> {
  return removingUndelivered(tx, [event], () => runSteps(tx, storedOnce(tx, event)));
}

function storedTogether(tx: SqlExecutor, events: readonly NewEvent[]): PublishedEvent[] | Promise<PublishedEvent[]> {
  return removingUndelivered(tx, events, () => runSteps(tx, storedOnceEach(tx, events)));
}

/** PostgreSQL writes with one statement, which leaves everything or nothing: there the promises of this function would be for nothing. */
function removingUndelivered<R>(tx: SqlExecutor, events: readonly NewEvent[], write: () => R | Promise<R>): R | Promise<R> {
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
  return registerAfterCommit(
    tx,
    call,
    options,
    writeTraced([call.event], ([event]) => runSteps(tx, storedOnce(tx, event as NewEvent)) as PublishedEvent),
  );
}

interface CheckedCall {
  readonly event: NewEvent;
  readonly database: SqlExecutor['database'];
  readonly queue: TaskQueue | undefined;
}

/** Every option, so that a misspelt one (`tenant_key`) cannot silently send an event to another audience. */
const OPTIONS: Readonly<Record<keyof PublishOptions, true>> = {
  owner: true,
  tenantKey: true,
  broadcast: true,
  using: true,
  orderingKey: true,
  idempotencyKey: true,
  queue: true,
  task: true,
};

function checkedCall(tx: SqlExecutor, type: string | EventType, data: object, given: PublishOptions | undefined): CheckedCall {
  // A call from JavaScript may leave it out: that is an event without an audience.
  const options = given ?? {};
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(OPTIONS, name))
      throw new PublishRefused(
        'option_unknown',
        `publish() has no option ${JSON.stringify(name)}; it has ${Object.keys(OPTIONS).join(', ')}.`,
      );
  }
  const database = databaseOf(tx, options.using);
  const clock = tx.clock ?? database?.clock ?? systemClock;
  const webhooks = database === undefined ? undefined : findWebhooks(database);
  const name = checkedType(isDeclared(type) ? type.name : type);
  const declared = isDeclared(type) ? type : webhooks?.settings.eventTypes.find((each) => each.name === name);
  const event: NewEvent = {
    id: uuidv7(clock),
    type: name,
    data: serialised(
      declared === undefined ? data : checkedData(declared, data),
      webhooks?.settings.payloadBytesMax ?? DEFAULT_PAYLOAD_BYTES_MAX,
    ),
    timestamp: clock.now(),
    audience: checkedAudience(options),
    orderingKey: checkedKey('orderingKey', options.orderingKey),
    idempotencyKey: checkedKey('idempotencyKey', options.idempotencyKey),
    traceparent: null,
  };
  return { event, database, queue: checkedQueue(tx, options) };
}

function* storedOnce(tx: SqlExecutor, event: NewEvent): SqlSteps<PublishedEvent> {
  return yield* firstOf(event, yield* writeEvent(tx, event, candidatePatterns(event.type)));
}

function* storedOnceEach(tx: SqlExecutor, events: readonly NewEvent[]): SqlSteps<PublishedEvent[]> {
  const written = yield* writeEvents(
    tx,
    events.map((event) => ({ event, patterns: candidatePatterns(event.type) })),
  );
  const published: PublishedEvent[] = [];
  for (const [index, event] of events.entries()) published.push(yield* firstOf(event, written[index] ?? { created: false, deliveries: 0 }));
  return published;
}

/** The event, or the one that used its idempotency key before. */
function* firstOf(event: NewEvent, { created, deliveries }: WrittenEvent): SqlSteps<PublishedEvent> {
  if (created) return { id: event.id, created, deliveries };
  const first = yield* findByIdempotencyKey(event);
  if (first?.data === event.data) return { id: first.id, created, deliveries };
  throw new PublishRefused('idempotency_key_reused', 'The idempotency key was used before for an event with other data.');
}

function registerAfterCommit(
  tx: SqlExecutor,
  { database, queue }: CheckedCall,
  { task }: PublishOptions,
  event: PublishedEvent,
): PublishedEvent {
  if (!event.created || tx.afterCommit === undefined) return event;
  if (event.deliveries > 0) wakeAfterCommit(tx, WAKE_CHANNEL);
  if (queue !== undefined) tx.afterCommit(() => queue.enqueue(event.id, aliasOf(tx) ?? 'default', { database, task }));
  return event;
}

function aliasOf(tx: SqlExecutor): string | undefined {
  return tx.using ?? tx.database?.using;
}

function databaseOf(tx: SqlExecutor | null | undefined, using: string | undefined): SqlExecutor['database'] {
  if (typeof tx?.query !== 'function' || tx.isTransaction === false) {
    throw new PublishRefused(
      'no_transaction',
      'publish() writes in your own transaction and none is open: call it with the tx of db.transaction(async (tx) => …), and await it there.',
    );
  }
  const alias = aliasOf(tx);
  if (using !== undefined && alias !== undefined && using !== alias) {
    throw new PublishRefused(
      'wrong_database',
      `The transaction belongs to the database "${alias}", not to "${using}": an event must be stored where the change is.`,
    );
  }
  const { database } = tx;
  if (database !== undefined && database.dialect !== tx.dialect)
    throw new PublishRefused(
      'wrong_database',
      `The transaction is on ${tx.dialect}, the database "${database.using}" on ${database.dialect}.`,
    );
  if (database !== undefined && findWebhooks(database) === undefined) {
    throw new PublishRefused(
      'not_installed',
      `Webhooks are not set up for the database "${database.using}": list it in webhooks({ databases: […] }), or publish in one that is.`,
    );
  }
  return database;
}

function isDeclared(type: string | EventType): type is EventType {
  return typeof type === 'object' && type !== null && isSchema(type.schema);
}

function checkedType(type: unknown): string {
  if (isEventType(type)) return type;
  throw new PublishRefused(
    'event_type_invalid',
    `An event type is at most ${EVENT_TYPE_LENGTH_MAX} characters: parts of letters, digits, "_" and "-", joined by dots, such as "order.paid".`,
  );
}

function serialised(data: unknown, bytesMax: number): string {
  if (typeof data !== 'object' || data === null || Array.isArray(data))
    throw new PublishRefused('data_invalid', 'The data of an event is a JSON object.');
  let text: unknown;
  try {
    text = JSON.stringify(data);
  } catch (error) {
    throw new PublishRefused(
      'data_invalid',
      `The data of the event is not JSON: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  // A toJSON method may return anything.
  if (typeof text !== 'string' || !text.startsWith('{')) throw new PublishRefused('data_invalid', 'The data of an event is a JSON object.');
  const bytes = Buffer.byteLength(text);
  if (bytes <= bytesMax) return text;
  throw new PublishRefused(
    'payload_too_large',
    `The data of the event is ${bytes} bytes of JSON; the limit is ${bytesMax}. Send a reference and let receivers fetch the rest.`,
  );
}

function checkedAudience(options: AudienceOptions): NewEvent['audience'] {
  const audience = parseAudience(options);
  checkedKey('owner', options.owner, AUDIENCE_KEY_LENGTH_MAX);
  checkedKey('tenantKey', options.tenantKey, AUDIENCE_KEY_LENGTH_MAX);
  return audience;
}

function checkedKey(name: string, key: unknown, lengthMax = EVENT_KEY_LENGTH_MAX): string | null {
  if (key === undefined) return null;
  if (typeof key === 'string' && key !== '' && key.length <= lengthMax && !key.includes('\0') && key.isWellFormed()) return key;
  throw new PublishRefused('key_invalid', `${name} must be a text of 1 to ${lengthMax} characters.`);
}

function checkedQueue(tx: SqlExecutor, { queue, task }: PublishOptions): TaskQueue | undefined {
  if ((queue !== undefined && typeof queue?.enqueue !== 'function') || (task !== undefined && typeof task !== 'function'))
    throw new PublishRefused('queue_invalid', 'A queue has a method enqueue(eventId, using), and a task is a function.');
  const chosen = queue ?? (task === undefined ? undefined : { enqueue: task });
  if (chosen === undefined || tx.afterCommit !== undefined) return chosen;
  throw new PublishRefused(
    'no_commit_hook',
    'This transaction cannot tell when it commits, so a queue would run too early: leave queue and task out, and let a worker deliver.',
  );
}
