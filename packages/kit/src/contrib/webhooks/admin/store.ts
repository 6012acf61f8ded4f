// SQL of the admin site's lists and record pages.
import { AdminConditions, type AdminRows, ofRequests, type SearchNote } from '../../../app/admin/list.ts';
import { bucketSql, type AdminBuckets } from '../../../app/admin/range.ts';
import type { AdminListQuery } from '../../../app/admin/declaration.ts';
import { boundOrder, newestRows, searchRows } from '../../../app/admin/search-rows.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import { uuidv7LowerBound } from '../../../db/values/uuidv7.ts';
import type { Db } from '../../../db/engine/db.ts';
import { heldBehind, WAITS_IN_ORDER } from '../endpoints/held-store.ts';
import type { WebhookDelivery, WebhookEndpoint, WebhookEvent } from '../endpoints/store.ts';
import { deliveryList, endpointList, eventList } from './lists.ts';

/** Everything about an endpoint but its secrets. */
export type ShownEndpoint = Omit<WebhookEndpoint, 'secret' | 'previous_secret' | 'older_secrets' | 'headers' | 'rate_next_at'>;

const ENDPOINT = [
  'id',
  'owner_id',
  'tenant_key',
  'url',
  'events',
  'description',
  'is_active',
  'disabled_reason',
  'disabled_at',
  'failing_since',
  'consecutive_failures',
  'previous_secret_expires_at',
  'signature',
  'public_key',
  'schedule',
  'header_names',
  'rate_limit',
  'send_traceparent',
  'created_at',
  'updated_at',
]
  .map((name) => `p.${name}`)
  .join(', ');

/** `failing` and `disabled` read partial indexes that hold nothing else. */
const ENDPOINT_STATES: Readonly<Record<string, string>> = {
  active: 'p.is_active and p.failing_since is null',
  failing: 'p.is_active and p.failing_since is not null',
  disabled: 'not p.is_active',
};

/** How many records a search looked at, where it did not look at all. */
type Searched<R> = AdminRows<R> & SearchNote;

/** `owners` are the ids of users whose name matches the search. */
export async function listEndpointsForAdmin(db: Db, query: AdminListQuery, owners: readonly string[]): Promise<Searched<ShownEndpoint>> {
  const { state } = query.filters;
  const search = { columns: ['url', 'description'], equals: [{ column: 'owner_id', values: owners }] };
  // What fails or is disabled has indexes; what is left does not.
  const filters = { search, equals: { owner: 'owner_id', tenant: 'tenant_key' }, isUnindexed: state === 'active' };
  const where = await endpointList.conditions(db, query, filters, state === undefined ? [] : [ENDPOINT_STATES[state] ?? '1 = 0']);
  return endpointList.rows<ShownEndpoint>(db, query, where, { columns: ENDPOINT });
}

export async function findShownEndpoint(db: Db, id: string): Promise<ShownEndpoint | null> {
  const [row] = await db.query<ShownEndpoint>(`select ${ENDPOINT} from webhook_endpoints p where p.id = $1`, [id]);
  return row ?? null;
}

/** Endpoints that fail or are disabled, newest first. */
export function listTroubledEndpoints(db: Db, limit: number): Promise<ShownEndpoint[]> {
  const of = (state: 'failing' | 'disabled') =>
    `select * from (select ${ENDPOINT} from webhook_endpoints p where ${ENDPOINT_STATES[state]} order by p.id desc limit $1) ${state}`;
  return db.query<ShownEndpoint>(`${of('failing')} union all ${of('disabled')}`, [limit]);
}

export type ListedDelivery = WebhookDelivery & {
  readonly url: string;
  /** Requests made in all; `attempts` counts those since the last manual retry. */
  readonly made: number;
  /** The pending delivery with the same ordering key that has to end first. */
  readonly waitsFor: Pick<WebhookDelivery, 'id' | 'event_type'> | null;
  /** Of the list: the request that published the event. */
  readonly request_id?: string | null;
};

/** Two statements for a page of deliveries, whatever its length. */
export async function withProgress<D extends WebhookDelivery & { readonly url: string }>(
  db: Db,
  deliveries: readonly D[],
): Promise<(D & ListedDelivery)[]> {
  if (deliveries.length === 0) return [];
  const counts = await db.query<{ delivery_id: string; made: number | bigint }>(
    `select delivery_id, count(*) as made from webhook_attempts
     where delivery_id in (${deliveries.map((_, index) => `$${index + 1}`).join(', ')}) group by delivery_id`,
    deliveries.map(({ id }) => id),
  );
  const made = new Map(counts.map((row) => [row.delivery_id, Number(row.made)]));
  const held = await heldBehind(db, deliveries);
  return deliveries.map((delivery) =>
    Object.assign(delivery, { made: made.get(delivery.id) ?? 0, waitsFor: held.get(delivery.id) ?? null }),
  );
}

/** What the filter offers: the states that the list shows, and all of what is not finished. */
export const DELIVERY_STATES = ['waiting', 'pending', 'retrying', 'held', 'no_audience', 'succeeded', 'failed'] as const;
type DeliveryState = (typeof DELIVERY_STATES)[number];

const HELD = `(d.ordering_key is not null and ${WAITS_IN_ORDER})`;

const STATE_CONDITIONS: Readonly<Record<DeliveryState, string>> = {
  waiting: 'd.next_attempt_at is not null',
  pending: `d.next_attempt_at is not null and d.attempts = 0 and not ${HELD}`,
  retrying: `d.next_attempt_at is not null and d.attempts > 0 and not ${HELD}`,
  held: `d.next_attempt_at is not null and ${HELD}`,
  no_audience: 'd.next_attempt_at is null',
  succeeded: `d.status = 'succeeded'`,
  failed: `d.status = 'failed'`,
};

/**
 * Where deliveries are read from. Work that is left and failures have partial indexes of their own, which a query must name
 * word for word; without them a list of the few failures among a million deliveries would read the million.
 */
function deliveriesFrom(
  state: DeliveryState | undefined,
  reason: string | undefined,
): { readonly from: string; readonly condition: string | null } {
  const pending = (condition: string) => `select * from webhook_deliveries where status = 'pending' and ${condition}`;
  const anyPending = `${pending('ordering_key is null')} union all ${pending('ordering_key is not null')}`;
  if (state === 'failed' || state === 'succeeded') return { from: 'from webhook_deliveries d', condition: STATE_CONDITIONS[state] };
  if (state !== undefined) return { from: `from (${anyPending}) d`, condition: STATE_CONDITIONS[state] };
  if (reason === undefined) return { from: 'from webhook_deliveries d', condition: null };
  return { from: `from (select * from webhook_deliveries where status = 'failed' union all ${anyPending}) d`, condition: null };
}

/** Events of one record whose deliveries a list looks at, the newest. */
const RECORD_EVENTS_MAX = 1_000;

function eventsOfRecord(key: string): string {
  return `select id from (select id from webhook_events where ordering_key = ${key} order by id desc limit ${RECORD_EVENTS_MAX}) e`;
}

export async function listDeliveriesForAdmin(db: Db, query: AdminListQuery): Promise<Searched<ListedDelivery>> {
  const where = new AdminConditions(db.dialect);
  const { status, event_type, endpoint, event, record, reason, since, until } = query.filters;
  const { from, condition } = deliveriesFrom(status as DeliveryState | undefined, reason);
  if (condition !== null) where.add(condition);
  if (reason !== undefined) where.add(`d.failure_reason = ${where.parameter(reason)}`);
  if (event_type !== undefined) where.add(`d.event_type = ${where.parameter(event_type)}`);
  // Neither the type nor success has an index: without anything else that narrows the list, old deliveries are not looked at.
  const isOfRequest = ofRequests(where, query, 'd.event_id', 'webhook_events');
  const isNarrowed = isOfRequest || [endpoint, event, record, since].some((filter) => filter !== undefined) || query.search !== null;
  const isUnindexed = status === 'succeeded' || (event_type !== undefined && status === undefined);
  if (isUnindexed && !isNarrowed) await newestRows(db, where, deliveryList.place);
  else await boundOrder(db, where, query, deliveryList.orders, deliveryList.place);
  if (endpoint !== undefined) where.uuid('d.endpoint_id', endpoint);
  if (event !== undefined) where.uuid('d.event_id', event);
  if (record !== undefined) where.add(`d.event_id in (${eventsOfRecord(where.parameter(record))})`);
  if (query.search !== null) where.uuid('d.event_id', query.search.replace(/^msg_/, ''), 'd.id');
  if (since !== undefined) where.add(`d.id >= ${where.parameter(uuidv7LowerBound(new Date(since)))}`);
  if (until !== undefined) where.add(`d.id < ${where.parameter(uuidv7LowerBound(new Date(until)))}`);
  const { rows, ...page } = await deliveryList.rows<WebhookDelivery & { url: string; request_id: string | null }>(db, query, where, {
    columns: 'd.*, p.url, (select e.request_id from webhook_events e where e.id = d.event_id) as request_id',
    from: `${from} join webhook_endpoints p on p.id = d.endpoint_id`,
    countFrom: from,
  });
  return { rows: await withProgress(db, rows), ...page };
}

export type ListedEvent = Omit<WebhookEvent, 'data'>;

/** More deliveries of one event than these are not counted for the list. */
export const EVENT_DELIVERIES_MAX = 1_000;

export interface DeliveredCount {
  readonly succeeded: number;
  readonly failed: number;
  readonly all: number;
}

/** How many deliveries of each event succeeded, from the newest of them. */
export async function deliveredCounts(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, DeliveredCount>> {
  if (ids.length === 0) return new Map();
  const count = (condition: string) => `(select count(*) from (
    select status from webhook_deliveries d where d.event_id = e.id limit ${EVENT_DELIVERIES_MAX}) c where ${condition})`;
  const rows = await db.query<{ id: string } & Record<keyof DeliveredCount, number | bigint>>(
    `select e.id, ${count(`c.status = 'succeeded'`)} as succeeded, ${count(`c.status = 'failed'`)} as failed, ${count('1 = 1')} as "all"
     from webhook_events e where e.id in (${ids.map((_, index) => `$${index + 1}`).join(', ')})`,
    ids,
  );
  return new Map(rows.map((row) => [row.id, { succeeded: Number(row.succeeded), failed: Number(row.failed), all: Number(row.all) }]));
}

/** Deliveries looked at for the rate and the last success of an endpoint in the list. */
export const RATE_DELIVERIES = 50;

export interface EndpointRate {
  readonly succeeded: number;
  /** With at least one attempt, whether it ended or not: what fails all the time must not look like nothing. */
  readonly tried: number;
  readonly lastDelivered: Date | null;
}

/** Of the newest deliveries of each endpoint: a few look-ups in its index, whatever it has received. */
export async function ratesOf(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, EndpointRate>> {
  if (ids.length === 0) return new Map();
  const newest = (
    column: string,
    condition: string,
  ) => `(select ${column} from (select id, status, attempts, delivered_at from webhook_deliveries d
    where d.endpoint_id = p.id order by d.id desc limit ${RATE_DELIVERIES}) c where ${condition})`;
  const rows = await db.query<{ id: string; succeeded: number | bigint; tried: number | bigint; last: Date | string | null }>(
    `select p.id, ${newest('count(*)', `c.status = 'succeeded'`)} as succeeded, ${newest('count(*)', `(c.status <> 'pending' or c.attempts > 0)`)} as tried,
       ${newest('max(c.delivered_at)', '1 = 1')} as last
     from webhook_endpoints p where p.id in (${ids.map((_, index) => `$${index + 1}`).join(', ')})`,
    ids,
  );
  return new Map(
    rows.map(({ id, succeeded, tried, last }) => [
      id,
      { succeeded: Number(succeeded), tried: Number(tried), lastDelivered: last === null ? null : new Date(last) },
    ]),
  );
}

export async function listEventsForAdmin(db: Db, query: AdminListQuery): Promise<Searched<ListedEvent>> {
  const where = new AdminConditions(db.dialect);
  const { type, audience, owner, tenant, ordering_key: orderingKey, since, until } = query.filters;
  if (query.search !== null) {
    const id = query.search.replace(/^msg_/, '').toLowerCase();
    if (isUuid(id)) where.uuid('e.id', id);
    else await searchRows(db, where, { ...eventList.place, columns: ['type'] }, query.search);
  }
  if (type !== undefined) where.add(`e.type = ${where.parameter(type)}`);
  // None has an index, which every publish would pay for: without a time or a record that narrows the list, old events are not looked at.
  const isNarrowed = ofRequests(where, query, 'e.id', 'webhook_events') || since !== undefined || orderingKey !== undefined;
  const isOpen = !isNarrowed && (query.search === null || where.searched === undefined);
  const isUnindexed = type !== undefined || owner !== undefined || tenant !== undefined || (audience !== undefined && audience !== 'none');
  if (isUnindexed && isOpen) await newestRows(db, where, eventList.place);
  else await boundOrder(db, where, query, eventList.orders, eventList.place);
  if (audience === 'none') where.add('e.audience is null');
  else if (audience !== undefined) where.add(`e.audience = ${where.parameter(audience)}`);
  if (owner !== undefined) where.add(`e.owner_id = ${where.parameter(owner)}`);
  if (tenant !== undefined) where.add(`e.tenant_key = ${where.parameter(tenant)}`);
  if (orderingKey !== undefined) where.add(`e.ordering_key = ${where.parameter(orderingKey)}`);
  if (since !== undefined) where.add(`e.id >= ${where.parameter(uuidv7LowerBound(new Date(since)))}`);
  if (until !== undefined) where.add(`e.id < ${where.parameter(uuidv7LowerBound(new Date(until)))}`);
  const columns = 'e.id, e.type, e.timestamp, e.audience, e.owner_id, e.tenant_key, e.ordering_key, e.idempotency_key, e.request_id';
  return eventList.rows<ListedEvent>(db, query, where, { columns });
}

/** Types that are offered while typing are those of so many events. */
const SUGGESTING_EVENTS = 2000;

/** The types of the newest events: of all of them it would take an index that every publish pays for. */
export async function publishedTypes(db: Db): Promise<readonly string[]> {
  const rows = await db.query<{ type: string }>(
    `select distinct type from (select type from webhook_events order by id desc limit ${SUGGESTING_EVENTS}) newest order by type`,
  );
  return rows.map(({ type }) => type);
}

/** Newest first; at most `limit`. */
export async function deliveriesOfEvent(db: Db, eventId: string, limit: number): Promise<ListedDelivery[]> {
  const rows = await db.query<WebhookDelivery & { url: string }>(
    `select d.*, p.url from webhook_deliveries d join webhook_endpoints p on p.id = d.endpoint_id
     where d.event_id = $1 order by d.id desc limit $2`,
    [eventId, limit],
  );
  return withProgress(db, rows);
}

type Named = { readonly id: string; readonly url: string; readonly type: string };

const NAMES: Readonly<Record<'endpoints' | 'events' | 'deliveries', string>> = {
  endpoints: `select p.id, p.url, '' as type from webhook_endpoints p where p.id in`,
  events: `select e.id, '' as url, e.type from webhook_events e where e.id in`,
  deliveries: `select d.id, p.url, d.event_type as type from webhook_deliveries d join webhook_endpoints p on p.id = d.endpoint_id where d.id in`,
};

/** What records are called by. */
export function namesOf(db: Db, table: keyof typeof NAMES, ids: readonly string[]): Promise<Named[]> {
  const known = ids.filter(isUuid);
  if (known.length === 0) return Promise.resolve([]);
  return db.query<Named>(`${NAMES[table]} (${known.map((_, index) => `$${index + 1}`).join(', ')})`, known);
}

/** Deliveries looked at for the health of one endpoint: enough to see a day, however busy it is. */
export const HEALTH_DELIVERIES_MAX = 5_000;
/** The longest a default schedule keeps trying, so attempts of today on deliveries of yesterday count too. */
const HEALTH_LOOK_BACK_MS = 72 * 3_600_000;

export interface BucketedAttempts {
  readonly bucket: number;
  readonly succeeded: number;
  readonly failed: number;
}

/** By index, one delivery after the other: PostgreSQL read all attempts to join them with a few thousand deliveries. */
const ATTEMPTS_OF_DELIVERY = {
  postgres: 'cross join lateral (select * from webhook_attempts w where w.delivery_id = d.id offset 0) a',
  sqlite: 'join webhook_attempts a on a.delivery_id = d.id',
} as const;

export async function attemptsOfEndpoint(db: Db, endpointId: string, buckets: AdminBuckets): Promise<readonly BucketedAttempts[]> {
  const rows = await db.query<Record<keyof BucketedAttempts, number | bigint>>(
    `select ${bucketSql('a.started_at', db.dialect, buckets)} as bucket, sum(case when a.failure_reason is null then 1 else 0 end) as succeeded,
       sum(case when a.failure_reason is null then 0 else 1 end) as failed
     from (select id from webhook_deliveries where endpoint_id = $1 and id >= $2 and id < $4 order by id desc limit ${HEALTH_DELIVERIES_MAX}) d
     ${ATTEMPTS_OF_DELIVERY[db.dialect]} where a.started_at >= $3 and a.started_at < $5 group by 1`,
    [
      endpointId,
      uuidv7LowerBound(new Date(buckets.since.getTime() - HEALTH_LOOK_BACK_MS)),
      buckets.since,
      uuidv7LowerBound(buckets.until),
      buckets.until,
    ],
    { mayBeLong: 'attempts of an endpoint' },
  );
  return rows.map((row) => ({ bucket: Number(row.bucket), succeeded: Number(row.succeeded), failed: Number(row.failed) }));
}

/** The newest deliveries that have an error to show. */
export function lastErrorsOf(db: Db, endpointId: string, limit: number): Promise<WebhookDelivery[]> {
  return db.query<WebhookDelivery>(
    `select d.* from (select * from webhook_deliveries where endpoint_id = $1 order by id desc limit 1000) d
     where d.last_error is not null order by d.id desc limit $2`,
    [endpointId, limit],
  );
}
