// SQL of the admin site's lists and record pages.
import { bucketSql, type AdminBuckets } from '../../../app/admin/range.ts';
import { uuidv7LowerBound } from '../../../db/values/uuidv7.ts';
import type { Db } from '../../../db/engine/db.ts';
import { heldBehind } from '../endpoints/held-store.ts';
import type { WebhookDelivery, WebhookEndpoint } from '../endpoints/store.ts';

const ENDPOINT = [
  'id',
  'owner_id',
  'tenant_key',
  'url',
  'is_active',
  'disabled_reason',
  'disabled_at',
  'failing_since',
  'consecutive_failures',
] as const;

/** What states and links of endpoints are made of. */
export type ShownEndpoint = Pick<WebhookEndpoint, (typeof ENDPOINT)[number]>;

/** `failing` and `disabled` read partial indexes that hold nothing else. */
export const ENDPOINT_STATES = {
  active: 'is_active and failing_since is null',
  failing: 'is_active and failing_since is not null',
  disabled: 'not is_active',
} as const;

/** Endpoints that fail or are disabled, newest first. */
export function listTroubledEndpoints(db: Db, limit: number): Promise<ShownEndpoint[]> {
  const of = (state: 'failing' | 'disabled') =>
    `select * from (select ${ENDPOINT.join(', ')} from webhook_endpoints where ${ENDPOINT_STATES[state]} order by id desc limit $1) ${state}`;
  return db.query<ShownEndpoint>(`${of('failing')} union all ${of('disabled')}`, [limit]);
}

/** What the list and the page of deliveries show besides their columns. */
export interface DeliveryProgress extends Pick<WebhookEndpoint, 'url' | 'is_active' | 'schedule'> {
  /** The request that published the event. */
  readonly request_id: string | null;
  /** Attempts in all; `attempts` counts those since the last manual retry. */
  readonly made: number;
  /** The pending delivery with the same ordering key that has to end first. */
  readonly waitsFor: Pick<WebhookDelivery, 'id' | 'event_type'> | null;
}

/** Two statements for a page of deliveries, whatever its length. */
export async function progressOf(
  db: Db,
  deliveries: readonly Pick<WebhookDelivery, 'id' | 'status' | 'ordering_key'>[],
): Promise<readonly DeliveryProgress[]> {
  const rows = await db.query<Omit<DeliveryProgress, 'made' | 'waitsFor'> & { id: string; made: number | bigint }>(
    `select d.id, p.url, p.is_active, p.schedule, e.request_id, (select count(*) from webhook_attempts a where a.delivery_id = d.id) as made
     from webhook_deliveries d join webhook_endpoints p on p.id = d.endpoint_id left join webhook_events e on e.id = d.event_id
     where d.id in (${deliveries.map((_, index) => `$${index + 1}`).join(', ')})`,
    deliveries.map(({ id }) => id),
  );
  const found = new Map(rows.map(({ id, made, ...row }) => [id, { ...row, made: Number(made) }]));
  const held = await heldBehind(db, deliveries);
  return deliveries.map(({ id }) => ({ ...(found.get(id) ?? DELETED), waitsFor: held.get(id) ?? null }));
}

/** Of a delivery that was deleted meanwhile. */
const DELETED = { url: '', is_active: false, schedule: null, request_id: null, made: 0 } as const;

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

/** Types that are offered while typing are those of so many events. */
const SUGGESTING_EVENTS = 2000;

/** The types of the newest events: of all of them it would take an index that every publish pays for. */
export async function publishedTypes(db: Db): Promise<readonly string[]> {
  const rows = await db.query<{ type: string }>(
    `select distinct type from (select type from webhook_events order by id desc limit ${SUGGESTING_EVENTS}) newest order by type`,
  );
  return rows.map(({ type }) => type);
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
