// SQL of the worker: which jobs may run now, and claiming them.
import { randomUUID } from 'node:crypto';
import type { Db } from '../../../db/engine/db.ts';
import { release, type Held } from './result-store.ts';

/** A job in the hands of this worker. */
export interface Claim {
  readonly id: string;
  readonly token: string;
  readonly name: string;
  readonly version: number;
  readonly queue: string;
  /** JSON text. */
  readonly input: string;
  /** With this one. */
  readonly attempts: number;
  readonly attempts_max: number;
  readonly serial_key: string | null;
  readonly owner_id: string;
  readonly tenant_key: string;
  readonly traceparent: string | null;
  readonly request_id: string | null;
}

export interface ClaimLimits {
  readonly queue: string;
  readonly now: Date;
  /** PostgreSQL counts it from its own clock, so that the clocks of the hosts need not agree. */
  readonly leaseMs: number;
  readonly max: number;
  readonly worker: string;
}

const CLAIMED =
  'id, claim_token as token, name, version, queue, input, attempts, attempts_max, serial_key, owner_id, tenant_key, traceparent, request_id';

// A unique key that is taken only until the job starts is free from here on.
const CLAIM_UPDATE = `status = 'running', attempts = w.attempts + 1, worker = $WORKER, started_at = $NOW, progress = null, progress_message = null,
  unique_lock = case when w.unique_until_started then null else w.unique_lock end`;

// A token of its own for every row and every claim: the beginning of a random UUID for the claim, the end of the job's. A random one for each
// row is a call of the system for each.
const tokenPostgres = (claim: string): string => `claim_token = left(${claim}, 24) || right(cast(w.id as text), 12)`;
const TOKEN_BEGINNING = 24;
/** All of it as one document: the driver takes as long for one row as JSON.parse for twenty. */
const DOCUMENT = `(select json_agg(r) from (select ${CLAIMED} from d) r) as jobs`;
// A claim does not wait for the disk: others see it at once, and a crash of the server that forgets the last claims leaves the jobs ready.
const WITHOUT_SYNC = `(select set_config('synchronous_commit', 'off', true)) as without_sync`;

const readyOf = (level: string, more: string): string =>
  `j.queue = $1 and j.status = 'queued' and j.is_ready and j.priority = ${level}${more}`;
const nextTurn = (more: string): string =>
  `(select j.turn_key from jobs j where ${readyOf('(select priority from level)', more)} order by j.turn_key limit 1)`;

/**
 * The highest priority of which jobs are ready, and of it one owner (or tenant, where jobs have no owner) after the other, beginning after the one that was served last: by index,
 * whatever the length of the queues between them. As many owners as there are slots are visited, and the slots divided among them. Rows
 * are locked as they are read, skipping what other workers have locked, so that workers neither wait for one another nor meet. The number
 * of slots is written into the statement: as a parameter it would be unknown to a plan that is made once.
 */
const claimReadyPostgres = (max: number): string => `with recursive level as materialized (
  select j.priority from jobs j where j.queue = $1 and j.status = 'queued' and j.is_ready and j.priority < $5
  order by j.priority desc limit 1
), later(turn_key, place) as (
  select ${nextTurn(' and j.turn_key > $4')}, 1
  union all
  select ${nextTurn(' and j.turn_key > l.turn_key')}, l.place + 1 from later l where l.turn_key is not null and l.place < ${max}
), earlier(turn_key, place) as (
  select ${nextTurn(' and j.turn_key <= $4')}, n.place + 1
  from (select cast(count(turn_key) as integer) as place from later) n where n.place < ${max}
  union all
  select ${nextTurn(' and j.turn_key > e.turn_key and j.turn_key <= $4')}, e.place + 1
  from earlier e where e.turn_key is not null and e.place < ${max}
), visited as materialized (
  select turn_key, place from later where turn_key is not null union all select turn_key, place from earlier where turn_key is not null
), found as (
  select v.turn_key, v.place, row_number() over (partition by v.place) as turn, due.at, due.id
  from visited v cross join lateral (
    select j.ctid as at, j.id from jobs j where ${readyOf('(select priority from level)', ' and j.turn_key = v.turn_key')}
    order by j.run_at, j.id limit (select ceil(${max}.0 / greatest(count(*), 1)) from visited) for update skip locked
  ) due
), chosen as materialized (select turn_key, place, turn, at, id from found order by turn, place limit ${max}), d as (
  update jobs w set ${CLAIM_UPDATE.replace('$WORKER', '$3').replace('$NOW', '$2')}, ${tokenPostgres('$7')},
    claimed_until = clock_timestamp() + $6 * interval '1 millisecond'
  where w.ctid = any(array(select at from chosen))
  returning w.id, w.claim_token, w.name, w.version, w.queue, w.input, w.attempts, w.attempts_max, w.serial_key, w.owner_id, w.tenant_key, w.traceparent, w.request_id
)
select ${DOCUMENT}, (select json_agg(id order by turn, place) from chosen) as ids, (select priority from level) as level,
  (select turn_key from chosen order by turn desc, place desc limit 1) as last_turn from ${WITHOUT_SYNC}`;

/** Larger than every priority. */
const ABOVE_ALL = 2_147_483_647;

/** Where a worker is in going round the owners of a queue. */
export interface RoundRobin {
  lastTurn: string;
  /** Claims that failed: the database went away, and may have made them. */
  unanswered?: readonly string[];
}

/**
 * Claims ready jobs of one queue: the highest priority first, its owners in turn, the longest due of each. Of one priority at a time, though there
 * may be room for more: what is claimed runs while the worker asks again, and need not wait for a second statement.
 */
export async function claimReady(db: Db, limits: ClaimLimits, round: RoundRobin): Promise<readonly Claim[]> {
  const asked = { ...limits, max: fewSizes(limits.max) };
  await releaseUnanswered(db, round);
  for (let below = ABOVE_ALL; ;) {
    const found = await (db.dialect === 'postgres' ? claimLevelPostgres : claimLevelSqlite)(db, asked, round, below);
    if (found.level === null || found.claims.length > 0) return found.claims;
    // Nothing of a level that has ready jobs: others are claiming them right now.
    below = found.level;
  }
}

/** By then the leases of those before have ended. */
const UNANSWERED_MAX = 100;
const UNANSWERED = `select id, claim_token as token from jobs
  where claimed_until is not null and left(claim_token, ${TOKEN_BEGINNING}) = any(cast($1 as text[]))`;

/** Jobs that were claimed for nobody are ready again, with all their attempts, before their leases end. */
async function releaseUnanswered(db: Db, round: RoundRobin): Promise<void> {
  if (round.unanswered === undefined || round.unanswered.length === 0) return;
  const beginnings = round.unanswered.map((claim) => claim.slice(0, TOKEN_BEGINNING));
  await release(db, await db.query<Held>(UNANSWERED, [beginnings]));
  round.unanswered = [];
}

interface ClaimedLevel {
  readonly claims: readonly Claim[];
  /** The highest priority of which jobs were ready; null: there were none. */
  readonly level: number | null;
}

/** At most `count`; few different numbers, because each is a statement of its own. */
function fewSizes(count: number): number {
  return count <= 16 ? count : count - (count % 16);
}

async function claimLevelPostgres(db: Db, limits: ClaimLimits, round: RoundRobin, below: number): Promise<ClaimedLevel> {
  const { queue, now, worker, leaseMs, max } = limits;
  const claim = randomUUID();
  const parameters = [queue, now, worker, round.lastTurn, below, leaseMs, claim];
  const [row] = await db
    .query<{ jobs: Claim[] | null; ids: string[] | null; level: number | null; last_turn: string | null }>(
      claimReadyPostgres(max),
      parameters,
    )
    .catch((error: unknown) => {
      round.unanswered = [...(round.unanswered ?? []).slice(1 - UNANSWERED_MAX), claim];
      throw error;
    });
  if (row?.last_turn !== null && row?.last_turn !== undefined) round.lastTurn = row.last_turn;
  return { claims: inOrder(row?.jobs ?? [], row?.ids ?? []), level: row?.level ?? null };
}

/** An update returns its rows in any order; they run in the order in which they were chosen. */
function inOrder(claims: readonly Claim[], ids: readonly string[]): Claim[] {
  const places = new Map(ids.map((id, place) => [id, place]));
  return claims.toSorted((a, b) => (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0));
}

const SQLITE_LEVEL = `select priority from jobs where queue = $1 and status = 'queued' and is_ready and priority < $2
  order by priority desc limit 1`;
const SQLITE_TURN = `select turn_key from jobs where queue = $1 and status = 'queued' and is_ready and priority = $2 and turn_key > $3
  order by turn_key limit 1`;
const SQLITE_DUE = `select id from jobs where queue = $1 and status = 'queued' and is_ready and priority = $2 and turn_key = $3
  order by run_at, id limit $4`;
const SQLITE_CLAIM = `update jobs as w set ${CLAIM_UPDATE.replace('$WORKER', '$2').replace('$NOW', '$3')},
  claim_token = lower(hex(randomblob(16))), claimed_until = $4
  where id in (select value from json_each($1)) and status = 'queued' and is_ready returning ${CLAIMED}`;

/** Smaller than every other. */
const BEFORE_ALL = '';

/** The only writer may look at one owner after the other. */
async function claimLevelSqlite(db: Db, limits: ClaimLimits, round: RoundRobin, below: number): Promise<ClaimedLevel> {
  const { queue, max } = limits;
  // Asked before the writer is taken: most of the time there is nothing.
  const [ready] = await db.query<{ priority: number }>(SQLITE_LEVEL, [queue, below]);
  if (ready === undefined) return { claims: [], level: null };
  return db.transaction(async (tx) => {
    const [level] = await tx.query<{ priority: number }>(SQLITE_LEVEL, [queue, below]);
    if (level === undefined) return { claims: [], level: null };
    const { priority } = level;
    const owners = await ownersInTurn(tx, queue, priority, round.lastTurn, max);
    const share = Math.ceil(max / Math.max(owners.length, 1));
    const queues: string[][] = [];
    for (const owner of owners)
      queues.push((await tx.query<{ id: string }>(SQLITE_DUE, [queue, priority, owner, share])).map(({ id }) => id));
    const chosen: string[] = [];
    for (let turn = 0; turn < share; turn++) {
      for (const [place, ids] of queues.entries()) {
        const id = ids[turn];
        if (id === undefined || chosen.length === max) continue;
        chosen.push(id);
        round.lastTurn = owners[place] ?? '';
      }
    }
    return { claims: await claimIdsSqlite(tx, chosen, limits), level: priority };
  });
}

async function ownersInTurn(tx: Db, queue: string, priority: number, after: string, max: number): Promise<string[]> {
  const owners: string[] = [];
  // Jobs without an owner and a tenant have one turn, the first: nothing is smaller than the empty string.
  const [ownerless] = await tx.query<{ id: string }>(SQLITE_DUE, [queue, priority, BEFORE_ALL, 1]);
  const visit = async (from: string, until: string | null): Promise<void> => {
    for (let last = from; owners.length < max;) {
      const [next] = await tx.query<{ turn_key: string }>(SQLITE_TURN, [queue, priority, last]);
      if (next === undefined || (until !== null && next.turn_key > until)) return;
      owners.push((last = next.turn_key));
    }
  };
  await visit(after, null);
  if (ownerless !== undefined && owners.length < max) owners.push(BEFORE_ALL);
  if (after !== BEFORE_ALL) await visit(BEFORE_ALL, after);
  return owners;
}

async function claimIdsSqlite(tx: Db, ids: readonly string[], { worker, now, leaseMs }: ClaimLimits): Promise<Claim[]> {
  if (ids.length === 0) return [];
  const until = new Date(now.getTime() + leaseMs);
  return inOrder(await tx.query<Claim>(SQLITE_CLAIM, [JSON.stringify(ids), worker, now, until]), ids);
}

const CLAIM_ONE_POSTGRES = `with d as (
  update jobs w set ${CLAIM_UPDATE.replace('$WORKER', '$3').replace('$NOW', '$2')}, ${tokenPostgres('$5')},
    claimed_until = clock_timestamp() + $4 * interval '1 millisecond'
  where w.id = $1 and w.status = 'queued' and w.is_ready
  returning w.id, w.claim_token, w.name, w.version, w.queue, w.input, w.attempts, w.attempts_max, w.serial_key, w.owner_id, w.tenant_key, w.traceparent, w.request_id
)
select ${DOCUMENT} from ${WITHOUT_SYNC}`;

/** Claims one job by its id, for queues of other engines. Undefined: another worker has it, or it is not ready. */
export async function claimOne(db: Db, id: string, limits: Omit<ClaimLimits, 'queue' | 'max'>): Promise<Claim | undefined> {
  if (db.dialect === 'postgres') {
    const [row] = await db.query<{ jobs: Claim[] | null }>(CLAIM_ONE_POSTGRES, [
      id,
      limits.now,
      limits.worker,
      limits.leaseMs,
      randomUUID(),
    ]);
    return row?.jobs?.[0];
  }
  return (await claimIdsSqlite(db, [id], { ...limits, queue: '', max: 1 }))[0];
}
