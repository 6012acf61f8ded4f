import type { Dialect } from '../../../db/dialect.ts';
import { operatorsSql, type Audience } from './audience.ts';
import {
  markTransaction,
  transactionEnded,
  transactionIsOpen,
  unmarkTransaction,
  type SqlExecutor,
  type SqlSteps,
} from '../../../db/engine/foreign/sql-executor.ts';
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
  /** The request that publishes it. */
  readonly requestId: string | null;
}

export interface WrittenEvent {
  /** False: the idempotency key was used before, and nothing was written. */
  readonly created: boolean;
  readonly deliveries: number;
}

const INSERT_EVENT = `insert into webhook_events (id, type, data, timestamp, audience, owner_id, tenant_key, ordering_key, idempotency_key, traceparent, request_id)`;
const ON_REUSED_KEY = `on conflict (idempotency_key, type, owner_id, tenant_key) where idempotency_key is not null do nothing`;
const INSERT_DELIVERIES = `insert into webhook_deliveries (id, event_id, endpoint_id, event_type, status, attempts, next_attempt_at, ordering_key, created_at)`;

// A delivery's key shares the first half (time and counter) of its event's, so that deliveries sort as their events do.
const DELIVERY_ID: Readonly<Record<Dialect, string>> = {
  postgres: `cast(left(cast(i.id as text), 18) || right(cast(gen_random_uuid() as text), 18) as uuid)`,
  sqlite: `substr(i.id, 1, 18) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(lower(hex(randomblob(2))), 2) || '-' || lower(hex(randomblob(6)))`,
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
  'request_id',
] as const;
const MANY_TYPES: Readonly<Partial<Record<(typeof MANY_COLUMNS)[number], string>>> = {
  place: 'integer',
  id: 'uuid',
  timestamp: 'timestamptz',
};

// Conditions that are always true, and whose second half is never computed. PostgreSQL adds the price of it to every row that it would read, and so
// reads by index: else it reads the whole table while that is small, and keeps doing so for as long as nothing tells it otherwise.
const BY_INDEX = `(s.pattern <> '' or to_tsvector('simple', s.pattern) is null)`;
const ENDPOINTS_BY_INDEX = `(p.is_active or to_tsvector('simple', p.owner_id) is null)`;

function matchingMany(patterns: string): string {
  const subscribed = (audiences: string, members: string): string =>
    `select s.endpoint_id from webhook_subscriptions s where i.audience in (${audiences}) and s.pattern ${patterns}${members} and ${BY_INDEX}`;
  return `${subscribed(`'owner', 'owner_in_tenant'`, ' and s.tenant_key = i.tenant and s.owner_id = i.owner')}
    union ${subscribed(`'tenant'`, ' and s.tenant_key = i.tenant')}
    union ${subscribed(`'broadcast'`, '')}
    union ${subscribed(`'owner', 'owner_in_tenant', 'tenant'`, ` and ${operatorsSql('s')}`)}`;
}

const MEMBER = `p.is_active and (i.audience = 'broadcast' or ${operatorsSql('p')} or (p.tenant_key = i.tenant and (i.audience = 'tenant' or p.owner_id = i.owner)))`;

// The endpoints as an array, because PostgreSQL may compare every endpoint with every subscription where it expects one of each (17 ms for 100).
// They are locked as a foreign key would lock them, once: see the function that writes one event.
function publishManyPostgres({ isOpen, notifies }: Variant): string {
  const notified = notifies ? `, notified as (select pg_notify('${WAKE_CHANNEL}', '') from (select 1 from delivery limit 1) d)` : '';
  const columns = MANY_COLUMNS.map((name) => `${name} ${MANY_TYPES[name] ?? 'text'}`).join(', ');
  return `with input as (select * from json_to_recordset(cast($1 as json)) as i(${columns}, patterns text[])), event as (
  ${INSERT_EVENT}
  select i.id, i.type, i.data, i.timestamp, i.audience, i.owner, i.tenant, i.ordering_key, i.idempotency_key, i.traceparent, i.request_id
  from input i where ${isOpen} order by i.place ${ON_REUSED_KEY} returning id
), delivery as (
  ${INSERT_DELIVERIES}
  select ${DELIVERY_ID.postgres}, i.id, m.id, i.type, 'pending', 0, i.timestamp, i.ordering_key, i.timestamp
  from event e join input i on i.id = e.id cross join lateral (
    select p.id from webhook_endpoints p where ${MEMBER} and ${ENDPOINTS_BY_INDEX} and p.id = any(array(${matchingMany('= any(i.patterns)')})) for key share of p
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
  events: `${INSERT_EVENT} select i.id, i.type, i.data, i.timestamp, i.audience, i.owner, i.tenant, i.ordering_key, i.idempotency_key, i.traceparent, i.request_id
  from ${MANY_SQLITE} i where ${isOpen} order by i.place ${ON_REUSED_KEY} returning id`,
  // Only of events that this call has written.
  deliveries: `${INSERT_DELIVERIES}
  select ${DELIVERY_ID.sqlite}, i.id, p.id, i.type, 'pending', 0, i.timestamp, i.ordering_key, i.timestamp
  from ${MANY_SQLITE} i join webhook_events e on e.id = i.id
  join webhook_subscriptions s on s.pattern in (select value from json_each(i.patterns))
    and (i.audience = 'broadcast' or ${operatorsSql('s')} or (s.tenant_key = i.tenant and (i.audience = 'tenant' or s.owner_id = i.owner)))
  join webhook_endpoints p on p.id = s.endpoint_id and ${MEMBER}
  where ${isOpen} group by i.id, p.id returning event_id as id`,
});

const PUBLISH_MANY_SQLITE = publishManySqlite('true');
const PUBLISH_MANY_SQLITE_GUARDED = publishManySqlite(transactionIsOpen('sqlite'));

/**
 * Writes events and one pending delivery per endpoint each is for, in the caller's transaction: one statement, two on SQLite. Where the library
 * cannot say whether that is open, the statements check it themselves and write nothing outside one.
 */
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
  const { id, type, data, timestamp, audience, orderingKey: ordering_key, idempotencyKey: idempotency_key } = event;
  const row = { place, id, type, data, timestamp, audience: audience.kind, ...audienceColumns(audience), ordering_key, idempotency_key };
  return { ...row, traceparent: event.traceparent, request_id: event.requestId, patterns };
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
    const rows = (yield [statements.deliveries, [document]]) as { id: string }[];
    for (const { id } of rows) counts.set(id, (counts.get(id) ?? 0) + 1);
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
