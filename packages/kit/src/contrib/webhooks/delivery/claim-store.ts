// SQL of the worker: which deliveries are due, and claiming them.
import type { Hindrance } from '../../../auth/rights/standing.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { WebhookEndpoint, WebhookEvent } from '../endpoints/store.ts';

/** A delivery that this worker has claimed, with everything needed to send it as it was when it was claimed. */
export interface Claim {
  readonly id: string;
  readonly token: string;
  readonly attempts: number;
  readonly orderingKey: string | null;
  /** Why the owner of the endpoint may not receive it. */
  readonly ownerHindrance?: Hindrance;
  readonly event: Pick<WebhookEvent, 'id' | 'type' | 'data' | 'timestamp' | 'audience' | 'owner_id' | 'tenant_key' | 'traceparent'>;
  readonly endpoint: Pick<
    WebhookEndpoint,
    | 'id'
    | 'owner_id'
    | 'tenant_key'
    | 'url'
    | 'is_active'
    | 'failing_since'
    | 'consecutive_failures'
    | 'secret'
    | 'previous_secret'
    | 'previous_secret_expires_at'
    | 'older_secrets'
    | 'schedule'
    | 'headers'
    | 'rate_limit'
    | 'send_traceparent'
  >;
}

export interface ClaimLimits {
  readonly now: Date;
  /** The end of the lease. */
  readonly until: Date;
  /** Free sending slots. */
  readonly free: number;
  /** Requests to one endpoint at a time. */
  readonly perEndpoint: number;
  /** Requests under way, by endpoint. */
  readonly busy: ReadonlyMap<string, number>;
}

/** Endpoints looked at per call where endpoints are visited one by one. */
const VISITED_MAX = 200;

const UNCLAIMED = '(claimed_until is null or claimed_until <= $1)';
const DUE = `status = 'pending' and ordering_key is null and next_attempt_at <= $1 and ${UNCLAIMED}`;

const DELIVERY_COLUMNS = 'id, claim_token as token, attempts, ordering_key, event_id, endpoint_id';
const EVENT_COLUMNS = 'id, type, data, timestamp, audience, owner_id, tenant_key, traceparent';
const ENDPOINT_COLUMNS = `id, owner_id, tenant_key, url, is_active, failing_since, consecutive_failures,
  secret, previous_secret, previous_secret_expires_at, older_secrets, schedule, headers, rate_limit, send_traceparent`;

// A token of its own for every row and every claim: the beginning of a random UUID for the claim, the end of the delivery's. A random one for each
// row is a call of the system for each.
const CLAIM_UPDATE = `update webhook_deliveries w
  set claim_token = left(cast(claim.uuid as text), 24) || right(cast(w.id as text), 12), claimed_until`;
const CLAIM = '(select gen_random_uuid() as uuid) claim';
const CLAIMED_COLUMNS = 'w.id, w.claim_token, w.attempts, w.ordering_key, w.event_id, w.endpoint_id, w.next_attempt_at';

// Every event and every endpoint is read and sent to us once, not once for each of its deliveries, and all of it as three documents: the driver
// takes as long for one row as JSON.parse for twenty, which was a tenth of the worker's time for a delivery.
const documents = (columns: string, table: string, reference: string): string =>
  `(select json_agg(r) from (select ${columns} from ${table} where id = any(array(select distinct ${reference} from d))) r)`;
// A claim does not wait for the disk (3 to 5 ms here): others see it at once, and a crash of the server that forgets the last claims does
// what the crash of a worker does, the deliveries are due again. Only results are promises.
const WITHOUT_SYNC = `(select set_config('synchronous_commit', 'off', true)) as without_sync`;
const CLAIMED = `select
  (select json_agg(r) from (select ${DELIVERY_COLUMNS} from d) r) as deliveries,
  ${documents(EVENT_COLUMNS, 'webhook_events', 'event_id')} as events,
  ${documents(ENDPOINT_COLUMNS, 'webhook_endpoints', 'endpoint_id')} as endpoints,
  (select min(next_attempt_at) from d) as earliest, (select max(next_attempt_at) from d) as latest
from ${WITHOUT_SYNC}`;

// The rows that are looked at are locked first, skipping what other workers look at, so that workers neither wait for one
// another nor meet. Of these, the free slots take up to the free share of each endpoint. The chosen are an array of places, which is
// read as such: a join may read the whole table. How many are looked at is written into the statement: as a parameter it would be
// unknown to a plan that is made once, and PostgreSQL would plan every claim again, which takes as long as the claim.
const claimDuePostgres = (seen: number): string => `with due as (
  select ctid as place_of, endpoint_id, next_attempt_at from webhook_deliveries where ${DUE} and next_attempt_at >= $7
  order by next_attempt_at limit ${seen} for update skip locked
), placed as (
  select due.place_of, due.next_attempt_at,
    row_number() over (partition by due.endpoint_id order by due.next_attempt_at) + coalesce(b.requests, 0) as place
  from due left join unnest(cast($5 as uuid[]), cast($6 as integer[])) as b(endpoint_id, requests) on b.endpoint_id = due.endpoint_id
), d as (
  ${CLAIM_UPDATE} = $2 from ${CLAIM}
  where w.ctid = any(array(select place_of from placed where place <= $3 order by next_attempt_at limit $4)) returning ${CLAIMED_COLUMNS}
)
${CLAIMED}`;

const CLAIM_DUE_SQLITE = `update webhook_deliveries set claim_token = lower(hex(randomblob(16))), claimed_until = $2
where id in (
  select id from (
    select due.id, due.next_attempt_at, row_number() over (partition by due.endpoint_id order by due.next_attempt_at) + coalesce(b.requests, 0) as place
    from (select id, endpoint_id, next_attempt_at from webhook_deliveries where ${DUE} order by next_attempt_at limit $3) due
    left join (select value ->> 0 as endpoint_id, value ->> 1 as requests from json_each($6)) b on b.endpoint_id = due.endpoint_id
  ) where place <= $4 order by next_attempt_at limit $5
) returning id`;

export interface ClaimedInTime {
  readonly claims: readonly Claim[];
  /** When the last of them was due, where it is known. */
  readonly latest: Date | null;
}

/** Claims the longest due deliveries without an ordering key, of those that are due since `from` where it is given. */
export async function claimDue(db: Db, limits: ClaimLimits, from: Date | null = null): Promise<ClaimedInTime> {
  const { now, until, free, perEndpoint, busy } = limits;
  // More rows than slots: some belong to endpoints that have their share already.
  const seen = powerOfTwo(free + perEndpoint);
  if (db.dialect === 'postgres') {
    const parameters = [now, until, perEndpoint, free, [...busy.keys()], [...busy.values()], from ?? '-infinity'];
    const [taken] = await db.query<ClaimedDocuments>(claimDuePostgres(seen), parameters);
    return { claims: fromDocuments(taken), latest: taken?.latest ?? null };
  }
  const rows = await db.query<{ id: string }>(CLAIM_DUE_SQLITE, [now, until, seen, perEndpoint, free, JSON.stringify([...busy])]);
  return { claims: await readClaims(db, rows), latest: null };
}

/** At least `count`; few different numbers, because each is a statement of its own. */
function powerOfTwo(count: number): number {
  return 2 ** Math.ceil(Math.log2(count));
}

async function readClaims(db: Db, claimed: readonly { readonly id: string }[]): Promise<Claim[]> {
  if (claimed.length === 0) return [];
  const rowsOf = <Row extends object>(columns: string, table: string, ids: Iterable<string>): Promise<Row[]> =>
    db.query<Row>(`select ${columns} from ${table} where id in (select value from json_each($1))`, [JSON.stringify([...ids])]);
  const deliveries = await rowsOf<ClaimedDelivery>(
    DELIVERY_COLUMNS,
    'webhook_deliveries',
    claimed.map(({ id }) => id),
  );
  const [events, endpoints] = await Promise.all([
    rowsOf<Claim['event']>(EVENT_COLUMNS, 'webhook_events', new Set(deliveries.map(({ event_id }) => event_id))),
    rowsOf<Claim['endpoint']>(ENDPOINT_COLUMNS, 'webhook_endpoints', new Set(deliveries.map(({ endpoint_id }) => endpoint_id))),
  ]);
  return toClaims({ deliveries, events, endpoints });
}

const CLAIM_BY_ID_POSTGRES = `with d as (
  ${CLAIM_UPDATE} = $2
  from (
    select id from webhook_deliveries
    where id = any(cast($3 as uuid[])) and status = 'pending' and next_attempt_at <= $1 and ${UNCLAIMED} for update skip locked
  ) chosen cross join ${CLAIM}
  where w.id = chosen.id returning ${CLAIMED_COLUMNS}
)
${CLAIMED}`;

const CLAIM_BY_ID_SQLITE = `update webhook_deliveries set claim_token = lower(hex(randomblob(16))), claimed_until = $2
where id in (select value from json_each($3)) and status = 'pending' and next_attempt_at <= $1 and ${UNCLAIMED} returning id`;

/** Claims the given deliveries, without those that another worker has claimed meanwhile. */
export async function claimByIds(db: Db, ids: readonly string[], { now, until }: Pick<ClaimLimits, 'now' | 'until'>): Promise<Claim[]> {
  if (ids.length === 0) return [];
  if (db.dialect === 'postgres') {
    const [taken] = await db.query<ClaimedDocuments>(CLAIM_BY_ID_POSTGRES, [now, until, ids]);
    return fromDocuments(taken);
  }
  return readClaims(db, await db.query<{ id: string }>(CLAIM_BY_ID_SQLITE, [now, until, JSON.stringify(ids)]));
}

/** A delivery that may be claimed. */
export interface Candidate {
  readonly id: string;
  readonly endpoint_id: string;
}

// The words of the index `webhook_deliveries_due_of_endpoint`, which only a query with the same words can use, and which no other index has:
// with `status = 'pending'` PostgreSQL may read the whole queue by time instead, once for every endpoint, and leave out what belongs
// to others (60 ms for what takes 1, behind a backlog of 3,000).
const waits = (row: string): string => `${row}.status <> 'succeeded' and ${row}.status <> 'failed' and ${row}.ordering_key is null`;

// From endpoint to endpoint by index, whatever the length of the queues between them: `claimDue` sees only the head of the
// whole queue, which the backlog of one slow endpoint can fill.
const ENDPOINTS = `recursive visited(endpoint_id, place) as (
  select (select n.endpoint_id from webhook_deliveries n where ${waits('n')} and n.endpoint_id > $2 order by n.endpoint_id limit 1), 1
  union all
  select (select n.endpoint_id from webhook_deliveries n where ${waits('n')} and n.endpoint_id > v.endpoint_id
    order by n.endpoint_id limit 1), v.place + 1
  from visited v where v.endpoint_id is not null and v.place < ${VISITED_MAX}
)`;

const OF_ENDPOINT = `select x.id, x.next_attempt_at from webhook_deliveries x where x.endpoint_id = v.endpoint_id and ${waits('x')}
  and x.next_attempt_at <= $1 and (x.claimed_until is null or x.claimed_until <= $1) order by x.next_attempt_at`;

// Finding and claiming in one statement: an endpoint that is full contributes nothing.
const CLAIM_BY_ENDPOINT_POSTGRES = `with ${ENDPOINTS}, chosen as (
  select due.id from visited v
  left join unnest(cast($6 as uuid[]), cast($7 as integer[])) as b(endpoint_id, requests) on b.endpoint_id = v.endpoint_id
  cross join lateral (${OF_ENDPOINT} limit greatest($4 - coalesce(b.requests, 0), 0)) due
  where v.endpoint_id is not null order by due.next_attempt_at limit $5
), d as (
  ${CLAIM_UPDATE} = $3 from ${CLAIM}
  where w.id = any(array(
    select id from webhook_deliveries
    where id = any(array(select id from chosen)) and status = 'pending' and ${UNCLAIMED} for update skip locked
  )) returning ${CLAIMED_COLUMNS}
)
select (select endpoint_id from visited where place = ${VISITED_MAX}) as cursor, claimed.* from (${CLAIMED}) claimed`;

const BY_ENDPOINT_SQLITE = `with ${ENDPOINTS} select v.endpoint_id, due.id from visited v
left join webhook_deliveries due on due.id in (select id from (${OF_ENDPOINT} limit $3)) where v.endpoint_id is not null order by v.place`;

/** Smaller than every key. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000';

export interface ClaimedOfEndpoints {
  readonly claims: readonly Claim[];
  /** When the first of them was due, where it is known. */
  readonly earliest: Date | null;
  /** Where to go on looking; null: the end was reached, begin again. */
  readonly cursor: string | null;
}

/** Claims due deliveries without an ordering key of the next endpoints after the cursor, up to the free share of each endpoint. */
export async function claimByEndpoint(db: Db, limits: ClaimLimits, cursor: string | null): Promise<ClaimedOfEndpoints> {
  const { now, until, free, perEndpoint, busy } = limits;
  const after = cursor ?? FIRST_ID;
  if (db.dialect === 'postgres') {
    const parameters = [now, after, until, perEndpoint, free, [...busy.keys()], [...busy.values()]];
    const [taken] = await db.query<ClaimedDocuments & { readonly cursor: string | null }>(CLAIM_BY_ENDPOINT_POSTGRES, parameters);
    return { claims: fromDocuments(taken), earliest: taken?.earliest ?? null, cursor: taken?.cursor ?? null };
  }
  const rows = await db.query<{ endpoint_id: string; id: string | null }>(BY_ENDPOINT_SQLITE, [now, after, perEndpoint]);
  const visited = new Set(rows.map((row) => row.endpoint_id));
  const found = rows.flatMap(({ id, endpoint_id }) => (id === null ? [] : [{ id, endpoint_id }]));
  return {
    claims: await claimByIds(
      db,
      fitting(found, limits).map(({ id }) => id),
      limits,
    ),
    earliest: null,
    cursor: visited.size < VISITED_MAX ? null : (rows.at(-1)?.endpoint_id ?? null),
  };
}

/** The candidates, in their order, that fit into the free slots, in all and per endpoint. */
export function fitting(candidates: readonly Candidate[], { free, perEndpoint, busy }: ClaimLimits): Candidate[] {
  const planned = new Map(busy);
  const chosen: Candidate[] = [];
  for (const candidate of candidates) {
    const requests = planned.get(candidate.endpoint_id) ?? 0;
    if (chosen.length >= free || requests >= perEndpoint) continue;
    planned.set(candidate.endpoint_id, requests + 1);
    chosen.push(candidate);
  }
  return chosen;
}

// Only the oldest pending delivery of an endpoint and ordering key may be sent: the others wait until it has succeeded or
// failed permanently. Heads are visited by index, from key to key.
const firstOrdered = (
  after: string,
): string => `(select n.id from webhook_deliveries n where n.status = 'pending' and n.ordering_key is not null
    and ${after} order by n.endpoint_id, n.ordering_key, n.id limit 1)`;
const orderedHeads = (first: string, next: string): string => `with recursive heads(id, place) as (
  select ${first}, 1
  union all
  select ${next}, h.place + 1
  from heads h join webhook_deliveries d on d.id = h.id where h.place < ${VISITED_MAX}
)
select d.id, d.endpoint_id, d.ordering_key,
  case when d.next_attempt_at <= $1 and (d.claimed_until is null or d.claimed_until <= $1) then 1 else 0 end as due
from heads h join webhook_deliveries d on d.id = h.id order by h.place`;

const ORDERED_HEADS: Readonly<Record<Db['dialect'], string>> = {
  postgres: orderedHeads(
    firstOrdered('(n.endpoint_id, n.ordering_key) > (cast($2 as uuid), $3)'),
    firstOrdered('(n.endpoint_id, n.ordering_key) > (d.endpoint_id, d.ordering_key)'),
  ),
  // SQLite compares such a pair by its first half and reads the rest: all that waits behind a head that fails, for every key after it.
  sqlite: orderedHeads(
    firstOrdered('(n.endpoint_id, n.ordering_key) > ($2, $3)'),
    `coalesce(${firstOrdered('n.endpoint_id = d.endpoint_id and n.ordering_key > d.ordering_key')},
      ${firstOrdered('n.endpoint_id > d.endpoint_id')})`,
  ),
};

export interface OrderedCandidates {
  readonly found: readonly Candidate[];
  readonly cursor: OrderedCursor | null;
}

export interface OrderedCursor {
  readonly endpointId: string;
  readonly orderingKey: string;
}

/** The due heads of the next ordering keys after the cursor. */
export async function dueInOrder(db: Db, now: Date, cursor: OrderedCursor | null): Promise<OrderedCandidates> {
  const after = cursor ?? { endpointId: FIRST_ID, orderingKey: '' };
  const parameters = [now, after.endpointId, after.orderingKey];
  const rows = await db.query<Candidate & { ordering_key: string; due: number }>(ORDERED_HEADS[db.dialect], parameters);
  const last = rows.at(-1);
  return {
    found: rows.filter(({ due }) => due === 1),
    cursor: rows.length < VISITED_MAX || last === undefined ? null : { endpointId: last.endpoint_id, orderingKey: last.ordering_key },
  };
}

/** The due deliveries of one event; with an ordering key, only heads. */
export async function dueOfEvent(db: Db, eventId: string, now: Date): Promise<Candidate[]> {
  return db.query<Candidate>(
    `select d.id, d.endpoint_id from webhook_deliveries d
     where d.event_id = $2 and d.status = 'pending' and d.next_attempt_at <= $1 and (d.claimed_until is null or d.claimed_until <= $1)
       and (d.ordering_key is null or not exists (
         select 1 from webhook_deliveries b
         where b.endpoint_id = d.endpoint_id and b.ordering_key = d.ordering_key and b.status = 'pending' and b.id < d.id))`,
    [now, eventId],
  );
}

interface ClaimedDelivery {
  readonly id: string;
  readonly token: string;
  readonly attempts: number;
  readonly ordering_key: string | null;
  readonly event_id: string;
  readonly endpoint_id: string;
}

interface ClaimedRows<Event, Endpoint> {
  readonly deliveries: readonly ClaimedDelivery[];
  readonly events: readonly Event[];
  readonly endpoints: readonly Endpoint[];
}

/** What PostgreSQL answers: dates are text in a document, and the document of nothing is null. */
type ClaimedDocuments = {
  readonly [Member in keyof ClaimedRows<unknown, unknown>]:
    | ClaimedRows<InDocument<Claim['event']>, InDocument<Claim['endpoint']>>[Member]
    | null;
} & { readonly earliest: Date | null; readonly latest: Date | null };
type InDocument<Row> = {
  readonly [Column in keyof Row]: Row[Column] extends Date | null ? string | Extract<Row[Column], null> : Row[Column];
};

function fromDocuments({ deliveries, events, endpoints }: Partial<ClaimedDocuments> = {}): Claim[] {
  return toClaims({
    deliveries: deliveries ?? [],
    events: (events ?? []).map(eventOf),
    endpoints: (endpoints ?? []).map(endpointOf),
  });
}

function eventOf(document: InDocument<Claim['event']>): Claim['event'] {
  return { ...document, timestamp: new Date(document.timestamp) };
}

function endpointOf(document: InDocument<Claim['endpoint']>): Claim['endpoint'] {
  const { failing_since: failingSince, previous_secret_expires_at: expiresAt } = document;
  return { ...document, failing_since: dateOf(failingSince), previous_secret_expires_at: dateOf(expiresAt) };
}

function dateOf(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}

/** Claims of one event share it, and those of one endpoint. */
function toClaims({ deliveries, events, endpoints }: ClaimedRows<Claim['event'], Claim['endpoint']>): Claim[] {
  const eventById = new Map(events.map((event) => [event.id, event]));
  const endpointById = new Map(endpoints.map((endpoint) => [endpoint.id, endpoint]));
  return deliveries.flatMap(({ id, token, attempts, ordering_key: orderingKey, event_id, endpoint_id }) => {
    const event = eventById.get(event_id);
    const endpoint = endpointById.get(endpoint_id);
    // One of them may have been deleted since, and this delivery with it.
    return event === undefined || endpoint === undefined ? [] : [{ id, token, attempts, orderingKey, event, endpoint }];
  });
}
