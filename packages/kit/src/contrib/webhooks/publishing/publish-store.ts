import type { Db } from '../../../db/db.ts';
import type { Dialect } from '../../../db/dialect.ts';
import { executeAtOnce, preparesStatements, sendAtOnce } from '../../../db/handle.ts';
import { andThen, type Maybe } from '../../../db/maybe.ts';
import { timestampText } from '../../../db/timestamp.ts';
import type { Audience } from './audience.ts';
import {
  markTransaction,
  transactionEnded,
  transactionIsOpen,
  unmarkTransaction,
  type SqlExecutor,
  type SqlParameter,
  type SqlStatement,
  type SqlSteps,
} from '../../../db/foreign/sql-executor.ts';
import { canWakeAfterCommit } from '../../../work/wake-workers.ts';

/** The channel on which new work wakes workers. */
export const WAKE_CHANNEL = 'kit_webhooks';

export interface NewEvent {
  readonly id: string;
  readonly type: string;
  /** JSON text. */
  readonly data: string;
  readonly timestamp: Date;
  readonly audience: Audience;
  readonly orderingKey: string | null;
  readonly idempotencyKey: string | null;
  readonly traceparent: string | null;
}

export interface WrittenEvent {
  /** False: the idempotency key was used before, and nothing was written. */
  readonly created: boolean;
  readonly deliveries: number;
}

const INSERT_EVENT = `insert into webhook_events (id, type, data, timestamp, audience, owner_id, tenant_key, ordering_key, idempotency_key, traceparent)`;
const ON_REUSED_KEY = `on conflict (idempotency_key, type, owner_id, tenant_key) where idempotency_key is not null do nothing`;
const INSERT_DELIVERIES = `insert into webhook_deliveries (id, event_id, endpoint_id, event_type, status, attempts, next_attempt_at, ordering_key, created_at)`;

// A delivery's key shares the first half (time and counter) of its event's, so that deliveries sort as their events do.
const DELIVERY_ID: Readonly<Record<Dialect, string>> = {
  postgres: `cast(left(cast(i.id as text), 18) || right(cast(gen_random_uuid() as text), 18) as uuid)`,
  sqlite: `substr($1, 1, 18) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(lower(hex(randomblob(2))), 2) || '-' || lower(hex(randomblob(6)))`,
};

/** The variants of a statement on PostgreSQL: of a transaction that is known to be open or checks it, with the notification of workers or without. */
interface Variant {
  readonly isOpen: string;
  readonly notifies: boolean;
}

interface Variants<V> {
  readonly known: V;
  readonly knownNotifying: V;
  readonly guarded: V;
  readonly guardedNotifying: V;
}

function variants<V>(mark: string, make: (variant: Variant) => V): Variants<V> {
  const guard = transactionIsOpen('postgres', mark);
  return {
    known: make({ isOpen: 'true', notifies: false }),
    knownNotifying: make({ isOpen: 'true', notifies: true }),
    guarded: make({ isOpen: guard, notifies: false }),
    guardedNotifying: make({ isOpen: guard, notifies: true }),
  };
}

function variantFor<V>(tx: SqlExecutor, of: Variants<V>): V {
  const notifies = !canWakeAfterCommit(tx);
  if (tx.isTransaction === true) return notifies ? of.knownNotifying : of.known;
  return notifies ? of.guardedNotifying : of.guarded;
}

// One statement and so one round trip: the event, its deliveries and, where it cannot be done after the commit, the notification of workers. The
// function is in the migrations. It returns the number of deliveries; -1: the idempotency key was used before.
const PUBLISH_CALL = `webhook_publish(cast(cast($1 as text) as uuid), cast($2 as text), cast($3 as text), cast(cast($4 as text) as timestamptz), cast($5 as text),
  cast($6 as text), cast($7 as text), cast($8 as text), cast($9 as text), cast($10 as text), cast(cast($11 as text) as text[]))`;

function publishPostgres({ isOpen, notifies }: Variant): string {
  const call = isOpen === 'true' ? PUBLISH_CALL : `case when ${isOpen} then ${PUBLISH_CALL} end`;
  if (!notifies) return `select ${call} as deliveries`;
  return `select deliveries, case when deliveries > 0 then cast(pg_notify('${WAKE_CHANNEL}', '') as text) end as notified
from (select ${call} as deliveries offset 0) published`;
}

const PUBLISH_POSTGRES = variants('cast($12 as text)', publishPostgres);

// The same without the function, for an event without an idempotency key and for connections that plan a statement once: an event that no endpoint
// subscribes to then costs the database a tenth less. Other connections would plan it every time, which costs more than the function.
//
// The last condition on subscriptions is always true, and its second half is never computed. PostgreSQL adds the price of it to every row that it
// would read, and so reads by index: else it reads the whole table while that is small, and keeps doing so for as long as nothing tells it otherwise.
const BY_INDEX = `(s.pattern <> '' or to_tsvector('simple', s.pattern) is null)`;

// By way of a subquery: a list that the planner sees would look cheaper than one that it does not, and the statement would be planned every time
// (124 instead of 24 µs for the lookup, with 5,000 subscriptions).
const PATTERNS = 'cast((select cast($9 as text[])) as text[])';

const MEMBERS: Readonly<Record<Audience['kind'], string>> = {
  owner: ' and s.tenant_key = $6 and s.owner_id = $5',
  owner_in_tenant: ' and s.tenant_key = $6 and s.owner_id = $5',
  tenant: ' and s.tenant_key = $6',
  broadcast: '',
};

function publishPrepared(kind: Audience['kind']): { readonly answered: string; readonly sent: string } {
  const event = `with event as (${INSERT_EVENT} values ($1, $2, $3, $4, '${kind}', $5, $6, $7, null, $8))`;
  const subscribed = `(select array(select s.endpoint_id from webhook_subscriptions s
  where s.pattern = any(${PATTERNS})${MEMBERS[kind]} and ${BY_INDEX}) as endpoints offset 0) subscribed`;
  const deliveries = `case when endpoints = '{}' then 0 else webhook_deliver($1, $2, $4, '${kind}', $5, $6, $7, endpoints) end`;
  return {
    answered: `${event}\nselect ${deliveries} as deliveries from ${subscribed}`,
    // One row when an endpoint is reached, else none: of a statement that was sent only the number of rows is known.
    sent: `${event}\nselect 1 as reached from ${subscribed} where ${deliveries} > 0`,
  };
}

const PUBLISH_PREPARED = byAudience(publishPrepared);
const PUBLISH_SENT = `select 1 as reached from (select ${PUBLISH_CALL} as deliveries offset 0) published where deliveries > 0`;

/** Membership is asked of the endpoint as well as of its subscription: a row that is out of step may miss an event, never leak one. */
const REACHED: Readonly<Record<Audience['kind'], { readonly subscription: string; readonly endpoint: string }>> = {
  owner: { subscription: `s.tenant_key = '' and s.owner_id = $5`, endpoint: `p.tenant_key = '' and p.owner_id = $5` },
  owner_in_tenant: { subscription: 's.tenant_key = $6 and s.owner_id = $5', endpoint: 'p.tenant_key = $6 and p.owner_id = $5' },
  tenant: { subscription: 's.tenant_key = $6', endpoint: 'p.tenant_key = $6' },
  broadcast: { subscription: 'true', endpoint: 'true' },
};

const subscribers = (kind: Audience['kind'], patterns: string): string =>
  `select s.endpoint_id from webhook_subscriptions s where s.pattern in (${patterns}) and ${REACHED[kind].subscription}`;

const deliveriesSqlite = (kind: Audience['kind'], patterns: string): string => `${INSERT_DELIVERIES}
  select ${DELIVERY_ID.sqlite}, $1, p.id, $2, 'pending', 0, $4, $3, $4 from webhook_endpoints p
  where p.is_active and ${REACHED[kind].endpoint} and p.id in (${subscribers(kind, patterns)})`;

const publishSqlite = (kind: Audience['kind'], isOpen: string) => ({
  event: `${INSERT_EVENT} select $1, $2, $3, $4, '${kind}', $5, $6, $7, $8, $9 where ${isOpen} ${ON_REUSED_KEY} returning id`,
  deliveries: `${deliveriesSqlite(kind, 'select value from json_each($7)')} and ${isOpen} returning 1 as one`,
});

const PUBLISH_SQLITE = byAudience((kind) => publishSqlite(kind, 'true'));
const PUBLISH_SQLITE_GUARDED = byAudience((kind) => publishSqlite(kind, transactionIsOpen('sqlite')));

// For an event without an idempotency key, in a transaction of the toolkit: nothing is asked back, every pattern has a placeholder of its own, and
// the insertion of deliveries, which opens nine trees, is not begun where nobody subscribed. 30 instead of 67 µs without a subscriber.
const EVENT_SQLITE = byAudience((kind) => `${INSERT_EVENT} values ($1, $2, $3, $4, '${kind}', $5, $6, $7, null, $8)`);
const DELIVERIES_SQLITE = byAudience<{ readonly subscribed: string; readonly deliveries: string }[]>(() => []);

/** By the number of patterns: 51 at most, for a type of 100 characters. */
function deliveriesOf(kind: Audience['kind'], patterns: number): { readonly subscribed: string; readonly deliveries: string } {
  const known = DELIVERIES_SQLITE[kind][patterns];
  if (known !== undefined) return known;
  const list = Array.from({ length: patterns }, (_, index) => `$${index + 7}`).join(', ');
  const made = { subscribed: `${subscribers(kind, list)} limit 1`, deliveries: deliveriesSqlite(kind, list) };
  return (DELIVERIES_SQLITE[kind][patterns] = made);
}

/**
 * Like `writeEvent` on SQLite, for an event without an idempotency key, in a transaction of the toolkit and without a promise where nothing has to be
 * waited for: nothing can be committed between the statements. How many deliveries there are.
 */
export function writeAtOnce(tx: Db, event: NewEvent, patterns: readonly string[]): Maybe<number> {
  const { id, type, data, audience, orderingKey, traceparent } = event;
  const { owner, tenant } = audienceColumns(audience);
  const timestamp = timestampText(event.timestamp);
  const { subscribed, deliveries } = deliveriesOf(audience.kind, patterns.length);
  const parameters = [id, type, orderingKey, timestamp, owner, tenant, ...patterns];
  const written = executeAtOnce(tx, EVENT_SQLITE[audience.kind], [id, type, data, timestamp, owner, tenant, orderingKey, traceparent]);
  return andThen(written, () =>
    andThen(executeAtOnce(tx, subscribed, parameters), ({ count }) =>
      count === 0 ? 0 : andThen(executeAtOnce(tx, deliveries, parameters), (inserted) => inserted.count),
    ),
  );
}

function byAudience<V>(make: (kind: Audience['kind']) => V): Readonly<Record<Audience['kind'], V>> {
  return { owner: make('owner'), owner_in_tenant: make('owner_in_tenant'), tenant: make('tenant'), broadcast: make('broadcast') };
}

/**
 * Writes the event and one pending delivery per endpoint it is for, in the caller's transaction. Where the library cannot say whether that is
 * open, the statements check it themselves and write nothing outside one.
 */
export function* writeEvent(tx: SqlExecutor, event: NewEvent, patterns: readonly string[]): SqlSteps<WrittenEvent> {
  const isKnownOpen = tx.isTransaction === true;
  if (tx.dialect === 'postgres') return yield* writeToPostgres(tx, event, patterns);
  if (isKnownOpen) return yield* writeToSqlite(PUBLISH_SQLITE[event.audience.kind], event, patterns);
  yield* markTransaction('sqlite', event.id);
  const written = yield* writeToSqlite(PUBLISH_SQLITE_GUARDED[event.audience.kind], event, patterns);
  if (!(yield* unmarkTransaction('sqlite'))) throw transactionEnded();
  return written;
}

/**
 * Like `writeEvent` on PostgreSQL, for an event without an idempotency key, in a transaction of the toolkit: the statement goes out with the next one
 * or with the commit, which fail when it fails. `reached` is told, before the commit is over, whether there are deliveries.
 */
export function sendEvent(tx: Db, event: NewEvent, patterns: readonly string[], reached: (isReached: boolean) => void): Maybe<void> {
  const answered = (_error: unknown, count: number): void => reached(count > 0);
  return preparesStatements(tx)
    ? sendAtOnce(tx, PUBLISH_PREPARED[event.audience.kind].sent, preparedParameters(event, patterns), { answered, joined: 'any' })
    : sendAtOnce(tx, PUBLISH_SENT, publishParameters(event, patterns), { answered });
}

function preparedParameters(event: NewEvent, patterns: readonly string[]): SqlParameter[] {
  const { id, type, data, timestamp, audience, orderingKey, traceparent } = event;
  const { owner, tenant } = audienceColumns(audience);
  return [id, type, data, timestampText(timestamp), owner, tenant, orderingKey, traceparent, textArray(patterns)];
}

function publishParameters(event: NewEvent, patterns: readonly string[]): SqlParameter[] {
  const { id, type, data, timestamp, audience, orderingKey, idempotencyKey, traceparent } = event;
  const { owner, tenant } = audienceColumns(audience);
  return [
    id,
    type,
    data,
    timestampText(timestamp),
    audience.kind,
    owner,
    tenant,
    orderingKey,
    idempotencyKey,
    traceparent,
    textArray(patterns),
  ];
}

/** What `publishStatement` returns. */
export interface PublishRow {
  /** -1: the idempotency key was used before. Null: no transaction is open. */
  readonly deliveries: number | null;
}

/** Writes the event and its deliveries on PostgreSQL. Where the library cannot say whether a transaction is open, the statement checks it itself. */
export function publishStatement(tx: SqlExecutor, event: NewEvent, patterns: readonly string[]): SqlStatement {
  if (event.idempotencyKey === null && preparesStatements(tx))
    return [PUBLISH_PREPARED[event.audience.kind].answered, preparedParameters(event, patterns)];
  const parameters = publishParameters(event, patterns);
  if (tx.isTransaction !== true) parameters.push(event.id);
  return [variantFor(tx, PUBLISH_POSTGRES), parameters];
}

/** Null: nothing was written, because no transaction is open. */
export function writtenBy([row]: readonly PublishRow[]): WrittenEvent | null {
  const deliveries = row?.deliveries ?? null;
  if (deliveries === null) return null;
  return deliveries === -1 ? { created: false, deliveries: 0 } : { created: true, deliveries };
}

function* writeToPostgres(tx: SqlExecutor, event: NewEvent, patterns: readonly string[]): SqlSteps<WrittenEvent> {
  const statement = publishStatement(tx, event, patterns);
  let written = writtenBy((yield statement) as PublishRow[]);
  if (written === null) {
    // Nothing was written before in this transaction, or there is none: only the mark of a transaction outlives its statement.
    yield* markTransaction('postgres', event.id);
    written = writtenBy((yield statement) as PublishRow[]);
  }
  if (written === null) throw transactionEnded();
  return written;
}

function* writeToSqlite(
  statements: ReturnType<typeof publishSqlite>,
  event: NewEvent,
  patterns: readonly string[],
): SqlSteps<WrittenEvent> {
  const { id, type, data, audience, orderingKey, idempotencyKey } = event;
  const { owner, tenant } = audienceColumns(audience);
  const timestamp = timestampText(event.timestamp);
  const created = yield [statements.event, [id, type, data, timestamp, owner, tenant, orderingKey, idempotencyKey, event.traceparent]];
  if (created.length === 0) return { created: false, deliveries: 0 };
  const deliveries = yield [statements.deliveries, [id, type, orderingKey, timestamp, owner, tenant, JSON.stringify(patterns)]];
  return { created: true, deliveries: deliveries.length };
}

function audienceColumns(audience: Audience): { readonly owner: string; readonly tenant: string } {
  return { owner: 'owner' in audience ? audience.owner : '', tenant: 'tenantKey' in audience ? audience.tenantKey : '' };
}

// Many events as one document. The branches of the lateral query are the audiences: each reads the index of subscriptions by its own columns, and
// those of other audiences are never begun. Owners outside a tenant have an empty tenant key, so both kinds of owner are one branch.
const MANY_COLUMNS = [
  'place',
  'id',
  'type',
  'data',
  'timestamp',
  'audience',
  'owner',
  'tenant',
  'ordering_key',
  'idempotency_key',
  'traceparent',
] as const;
const MANY_TYPES: Readonly<Partial<Record<(typeof MANY_COLUMNS)[number], string>>> = {
  place: 'integer',
  id: 'uuid',
  timestamp: 'timestamptz',
};

function matchingMany(patterns: string): string {
  const subscribed = (audiences: string, members: string): string =>
    `select s.endpoint_id from webhook_subscriptions s where i.audience in (${audiences}) and s.pattern ${patterns}${members}`;
  return `${subscribed(`'owner', 'owner_in_tenant'`, ' and s.tenant_key = i.tenant and s.owner_id = i.owner')}
    union ${subscribed(`'tenant'`, ' and s.tenant_key = i.tenant')}
    union ${subscribed(`'broadcast'`, '')}`;
}

const MEMBER = `p.is_active and (i.audience = 'broadcast' or (p.tenant_key = i.tenant and (i.audience = 'tenant' or p.owner_id = i.owner)))`;

// The endpoints as an array, because PostgreSQL may compare every endpoint with every subscription where it expects one of each (17 ms for 100).
// They are locked as a foreign key would lock them, once: see the function that writes one event.
function publishManyPostgres({ isOpen, notifies }: Variant): string {
  const notified = notifies ? `, notified as (select pg_notify('${WAKE_CHANNEL}', '') from (select 1 from delivery limit 1) d)` : '';
  const columns = MANY_COLUMNS.map((name) => `${name} ${MANY_TYPES[name] ?? 'text'}`).join(', ');
  return `with input as (select * from json_to_recordset(cast($1 as json)) as i(${columns}, patterns text[])), event as (
  ${INSERT_EVENT}
  select i.id, i.type, i.data, i.timestamp, i.audience, i.owner, i.tenant, i.ordering_key, i.idempotency_key, i.traceparent
  from input i where ${isOpen} order by i.place ${ON_REUSED_KEY} returning id
), delivery as (
  ${INSERT_DELIVERIES}
  select ${DELIVERY_ID.postgres}, i.id, m.id, i.type, 'pending', 0, i.timestamp, i.ordering_key, i.timestamp
  from event e join input i on i.id = e.id cross join lateral (
    select p.id from webhook_endpoints p where ${MEMBER} and p.id = any(array(${matchingMany('= any(i.patterns)')})) for key share of p
  ) m
  returning event_id
)${notified}
select cast(i.place as integer) as place, e.id is not null as created, cast(count(d.event_id) as integer) as deliveries,
  ${isOpen} as open${notifies ? ', (select count(*) from notified) as notified' : ''}
from input i left join event e on e.id = i.id left join delivery d on d.event_id = i.id group by i.place, e.id order by i.place`;
}

const PUBLISH_MANY_POSTGRES = variants('cast($2 as text)', publishManyPostgres);

const MANY_SQLITE = `(select ${[...MANY_COLUMNS, 'patterns'].map((name) => `value ->> '${name}' as ${name}`).join(', ')} from json_each($1))`;
const publishManySqlite = (isOpen: string) => ({
  events: `${INSERT_EVENT} select i.id, i.type, i.data, i.timestamp, i.audience, i.owner, i.tenant, i.ordering_key, i.idempotency_key, i.traceparent
  from ${MANY_SQLITE} i where ${isOpen} order by i.place ${ON_REUSED_KEY} returning id`,
  // Only of events that this call has written.
  deliveries: `${INSERT_DELIVERIES}
  select ${DELIVERY_ID.sqlite.replace('$1', 'i.id')}, i.id, p.id, i.type, 'pending', 0, i.timestamp, i.ordering_key, i.timestamp
  from ${MANY_SQLITE} i join webhook_events e on e.id = i.id
  join webhook_subscriptions s on s.pattern in (select value from json_each(i.patterns))
    and (i.audience = 'broadcast' or (s.tenant_key = i.tenant and (i.audience = 'tenant' or s.owner_id = i.owner)))
  join webhook_endpoints p on p.id = s.endpoint_id and ${MEMBER}
  where ${isOpen} group by i.id, p.id returning event_id`,
});

const PUBLISH_MANY_SQLITE = publishManySqlite('true');
const PUBLISH_MANY_SQLITE_GUARDED = publishManySqlite(transactionIsOpen('sqlite'));

/** Like `writeEvent` for many events, in the same number of statements. */
export function* writeEvents(tx: SqlExecutor, events: readonly EventWithPatterns[]): SqlSteps<WrittenEvent[]> {
  const isKnownOpen = tx.isTransaction === true;
  const document = JSON.stringify(events.map(manyRow));
  if (tx.dialect === 'postgres') return yield* writeManyToPostgres(tx, document, events[0]?.event.id ?? '');
  if (isKnownOpen) return yield* writeManyToSqlite(PUBLISH_MANY_SQLITE, document, events);
  yield* markTransaction('sqlite', '');
  const written = yield* writeManyToSqlite(PUBLISH_MANY_SQLITE_GUARDED, document, events);
  if (!(yield* unmarkTransaction('sqlite'))) throw transactionEnded();
  return written;
}

export interface EventWithPatterns {
  readonly event: NewEvent;
  readonly patterns: readonly string[];
}

function manyRow({ event, patterns }: EventWithPatterns, place: number): object {
  const { id, type, data, timestamp, audience, orderingKey: ordering_key, idempotencyKey: idempotency_key, traceparent } = event;
  const row = { place, id, type, data, timestamp, audience: audience.kind, ...audienceColumns(audience), ordering_key, idempotency_key };
  return { ...row, traceparent, patterns };
}

function* writeManyToPostgres(tx: SqlExecutor, document: string, mark: string): SqlSteps<WrittenEvent[]> {
  const statement = variantFor(tx, PUBLISH_MANY_POSTGRES);
  const parameters = tx.isTransaction === true ? [document] : [document, mark];
  type ManyRow = WrittenEvent & { readonly open: boolean };
  let rows = (yield [statement, parameters]) as ManyRow[];
  if (rows[0]?.open === false) {
    yield* markTransaction('postgres', mark);
    rows = (yield [statement, parameters]) as ManyRow[];
  }
  if (rows[0]?.open === false) throw transactionEnded();
  return rows.map(({ created, deliveries }) => ({ created, deliveries }));
}

function* writeManyToSqlite(
  statements: ReturnType<typeof publishManySqlite>,
  document: string,
  events: readonly EventWithPatterns[],
): SqlSteps<WrittenEvent[]> {
  const created = new Set(((yield [statements.events, [document]]) as { id: string }[]).map(({ id }) => id));
  const counts = new Map<string, number>();
  if (created.size > 0) {
    const rows = (yield [statements.deliveries, [document]]) as { event_id: string }[];
    for (const { event_id: id } of rows) counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return events.map(({ event: { id } }) => ({ created: created.has(id), deliveries: counts.get(id) ?? 0 }));
}

/** SQLite writes an event and its deliveries in two statements: what is left when the transaction was committed between them. */
export const REMOVE_UNDELIVERED = `delete from webhook_events where id in (select value from json_each($1))
  and not exists (select 1 from webhook_deliveries d where d.event_id = webhook_events.id)`;

/** The event that used the idempotency key first. */
export function* findByIdempotencyKey(event: NewEvent): SqlSteps<{ id: string; data: string } | null> {
  const { audience, type, idempotencyKey } = event;
  const [row] = (yield [
    'select id, data from webhook_events where idempotency_key = $1 and type = $2 and owner_id = $3 and tenant_key = $4',
    [idempotencyKey, type, 'owner' in audience ? audience.owner : '', 'tenantKey' in audience ? audience.tenantKey : ''],
  ]) as { id: string; data: string }[];
  return row ?? null;
}

/** As text, so that every driver can bind it. Patterns hold neither quotes nor backslashes. */
function textArray(patterns: readonly string[]): string {
  let text = textArrays.get(patterns);
  if (text === undefined) textArrays.set(patterns, (text = `{${patterns.map((pattern) => `"${pattern}"`).join(',')}}`));
  return text;
}

/** The patterns of a type are one list, made once. */
const textArrays = new WeakMap<readonly string[], string>();
