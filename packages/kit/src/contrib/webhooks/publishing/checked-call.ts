import { systemClock } from '../../../db/clock.ts';
import type { SqlExecutor } from '../../../db/engine/foreign/sql-executor.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { actingRequestId } from '../../../http/exchange/acting-request.ts';
import { isSchema } from '../../../http/declare/schema.ts';
import { EVENT_TYPE_LENGTH_MAX, isEventType } from './subscription.ts';
import { PublishRefused } from '../errors.ts';
import { AUDIENCE_KEY_LENGTH_MAX, EVENT_KEY_LENGTH_MAX } from '../models.ts';
import { DEFAULT_PAYLOAD_BYTES_MAX } from '../options.ts';
import { findWebhooks } from '../webhooks.ts';
import { InvalidAudience, parseAudience, type Audience, type AudienceOptions } from './audience.ts';
import type { CallFault } from './call-fault.ts';
import { checkedData, type EventType } from './event-type.ts';
import type { NewEvent } from './publish-store.ts';
import type { DeliveryTask, TaskQueue } from './task-queue.ts';
import { isMembers } from '../../../options/value-rule.ts';

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

export interface CheckedCall {
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

/** The event of a call, or one refusal that names everything that is wrong with the call. */
export function checkedCall(tx: SqlExecutor, type: string | EventType, data: object, given: PublishOptions | undefined): CheckedCall {
  // A call from JavaScript may leave it out: that is an event without an audience.
  const options = given ?? {};
  try {
    return readCall(tx, type, data, options);
  } catch (error) {
    throw isRefusal(error) ? withAllFaults(error, refusalsOf(tx, type, data, options)) : error;
  }
}

/** The events of several calls, or one refusal that names everything that is wrong with any of them. */
export function checkedCalls<E>(events: readonly E[], check: (event: E) => CheckedCall): CheckedCall[] {
  const calls: CheckedCall[] = [];
  const refusals: Refusal[] = [];
  for (const [index, event] of events.entries()) {
    try {
      calls.push(check(event));
    } catch (error) {
      if (!isRefusal(error)) throw error;
      refusals.push(ofEvent(error, index));
    }
  }
  const [first] = refusals;
  if (first !== undefined) throw withAllFaults(first, refusals);
  return calls;
}

function readCall(tx: SqlExecutor, type: string | EventType, data: object, options: PublishOptions): CheckedCall {
  checkNames(options, OPTIONS);
  const database = databaseOf(tx, options.using);
  // The application's: its workers compare the time with theirs.
  const clock = (database === undefined ? undefined : findWebhooks(database)?.clock) ?? tx.clock ?? database?.clock ?? systemClock;
  const name = checkedType(type);
  const event: NewEvent = {
    id: uuidv7(clock),
    type: name,
    data: checkedText(database, type, data),
    timestamp: clock.now(),
    audience: checkedAudience(options),
    orderingKey: checkedKey('orderingKey', options.orderingKey),
    idempotencyKey: checkedKey('idempotencyKey', options.idempotencyKey),
    traceparent: null,
    requestId: actingRequestId(),
  };
  return { event, database, queue: checkedQueue(tx, options) };
}

type Refusal = PublishRefused | InvalidAudience;

function isRefusal(error: unknown): error is Refusal {
  return error instanceof PublishRefused || error instanceof InvalidAudience;
}

/** Every check of a call that was refused, one by one. */
function refusalsOf(tx: SqlExecutor, type: string | EventType, data: object, options: PublishOptions): Refusal[] {
  const { owner, tenantKey, broadcast } = options;
  const checks: readonly (() => unknown)[] = [
    () => checkNames(options),
    () => databaseOf(tx, options.using),
    () => checkedType(type),
    () => checkedText(tx?.database, type, data),
    // Each by itself, beside an audience that is valid without it.
    () => checkedAudience({ owner, tenantKey: owner === undefined ? 'a' : undefined }),
    () => checkedAudience({ tenantKey, owner: tenantKey === undefined ? 'a' : undefined }),
    () => parseAudience({ broadcast, owner: broadcast === true ? undefined : 'a' }),
    () => checkedAudience(options),
    () => checkedKey('orderingKey', options.orderingKey),
    () => checkedKey('idempotencyKey', options.idempotencyKey),
    () => checkedQueue(tx, options),
  ];
  return checks.flatMap((check) => {
    try {
      check();
      return [];
    } catch (error) {
      return isRefusal(error) ? [error] : [];
    }
  });
}

/** The refusal with the faults of all; each is named once. */
function withAllFaults(first: Refusal, refusals: readonly Refusal[]): Refusal {
  const faults = new Map<string, CallFault>();
  for (const refusal of [first, ...refusals]) for (const fault of refusal.faults) faults.set(fault.message, fault);
  return faults.size === first.faults.length ? first : refusalWith(first, [...faults.values()]);
}

function ofEvent(refusal: Refusal, index: number): Refusal {
  return refusalWith(
    refusal,
    refusal.faults.map(({ code, message }) => ({ code, message: `events[${index}]: ${message}` })),
  );
}

/** Of the same class and code. */
function refusalWith(refusal: Refusal, faults: readonly CallFault[]): Refusal {
  const message = faults.map((fault) => fault.message).join(' ');
  return refusal instanceof InvalidAudience
    ? new InvalidAudience(refusal.code, message, faults)
    : new PublishRefused(refusal.code, message, faults);
}

function checkNames(options: PublishOptions, names: Readonly<Record<string, true>> = OPTIONS): void {
  for (const name of Object.keys(options)) if (!Object.hasOwn(names, name)) throw unknownNames(options);
}

function unknownNames(options: PublishOptions): PublishRefused {
  const unknown = Object.keys(options).filter((name) => !Object.hasOwn(OPTIONS, name));
  const names = unknown.map((name) => JSON.stringify(name)).join(', ');
  return new PublishRefused('option_unknown', `publish() has no option ${names}; it has ${Object.keys(OPTIONS).join(', ')}.`);
}

export function aliasOf(tx: SqlExecutor): string | undefined {
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

function checkedType(type: string | EventType): string {
  const name = isDeclared(type) ? type.name : type;
  if (isEventType(name)) return name;
  throw new PublishRefused(
    'event_type_invalid',
    `An event type is at most ${EVENT_TYPE_LENGTH_MAX} characters: parts of letters, digits, "_" and "-", joined by dots, such as "order.paid".`,
  );
}

/** What is stored and sent: JSON text. */
function checkedText(database: SqlExecutor['database'], type: string | EventType, data: object): string {
  const settings = database === undefined ? undefined : findWebhooks(database)?.settings;
  const declared = isDeclared(type) ? type : settings?.eventTypes.find(({ name }) => name === type);
  return serialised(declared === undefined ? data : checkedData(declared, data), settings?.payloadBytesMax ?? DEFAULT_PAYLOAD_BYTES_MAX);
}

function serialised(data: unknown, bytesMax: number): string {
  if (!isMembers(data)) throw new PublishRefused('data_invalid', 'The data of an event is a JSON object.');
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

function checkedAudience(options: AudienceOptions): Audience {
  const audience = parseAudience(options);
  checkedKey('owner', options.owner, AUDIENCE_KEY_LENGTH_MAX);
  checkedKey('tenantKey', options.tenantKey, AUDIENCE_KEY_LENGTH_MAX);
  return audience;
}

function checkedKey(name: string, key: unknown, lengthMax = EVENT_KEY_LENGTH_MAX): string | null {
  if (key === undefined) return null;
  if (typeof key === 'string' && key !== '' && key.length <= lengthMax && !key.includes('\0') && key.isWellFormed()) return key;
  throw new PublishRefused('key_invalid', `${name} must be a string of 1 to ${lengthMax} characters.`);
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
