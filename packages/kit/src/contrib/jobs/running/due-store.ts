// SQL that makes jobs ready: those whose time has come, and the first of every serial key.
import type { Db } from '../../../db/engine/db.ts';
import { isUniqueViolation } from '../../../db/engine/constraint-violation.ts';

/** Jobs made ready by one statement. */
const BATCH = 1000;
/** Serial keys looked at per call. */
const VISITED_MAX = 200;

export interface ReadyJob {
  readonly id: string;
  readonly queue: string;
  readonly priority: number;
}

const DUE = `status = 'queued' and not is_ready and serial_key is null and run_at <= $1`;
const MAKE_READY = 'update jobs set is_ready = true';
const READY = 'returning id, queue, priority';

const PROMOTE_POSTGRES = `${MAKE_READY} where id = any(array(
  select id from jobs where ${DUE} order by run_at limit ${BATCH} for update skip locked)) ${READY}`;
const PROMOTE_SQLITE = `${MAKE_READY} where id in (select id from jobs where ${DUE} order by run_at limit ${BATCH}) ${READY}`;
const ANY_DUE = `select id from jobs where ${DUE} limit 1`;

/** Jobs without a serial key whose time has come. Full batches may leave more. */
export async function promoteDue(db: Db, now: Date): Promise<{ readonly ready: readonly ReadyJob[]; readonly mayBeMore: boolean }> {
  // On SQLite a look costs nothing and a write waits for the writer.
  if (db.dialect === 'sqlite' && (await db.query(ANY_DUE, [now])).length === 0) return { ready: [], mayBeMore: false };
  const ready = await db.query<ReadyJob>(db.dialect === 'postgres' ? PROMOTE_POSTGRES : PROMOTE_SQLITE, [now]);
  return { ready, mayBeMore: ready.length === BATCH };
}

/** When the next job without a serial key becomes due. One that is due already is locked: it is tried again at the next poll, not sooner. */
export async function nextDueAt(db: Db, now: Date): Promise<Date | null> {
  const [row] = await db.query<{ run_at: Date }>(
    `select run_at from jobs where status = 'queued' and not is_ready and serial_key is null and run_at > $1 order by run_at limit 1`,
    [now],
  );
  return row?.run_at ?? null;
}

// The words of the index `jobs_serial`, which only a query with the same words can use.
const live = (row: string): string => `${row}.serial_key is not null and (${row}.finished_at is null or ${row}.claimed_until is not null)`;
const nextKey = (after: string): string =>
  `(select j.serial_key from jobs j where ${live('j')} and j.serial_key > ${after} order by j.serial_key limit 1)`;
// Only the oldest job of a serial key may run: the others wait until it has ended permanently. Keys are visited by index, from one to the next.
const HEADS = `with recursive keys(serial_key, place) as (
  select ${nextKey('$1')}, 1
  union all
  select ${nextKey('k.serial_key')}, k.place + 1 from keys k where k.serial_key is not null and k.place < ${VISITED_MAX}
)
select k.serial_key, h.id, h.run_at, h.status, h.is_ready from keys k
join jobs h on h.id = (select j.id from jobs j where ${live('j')} and j.serial_key = k.serial_key order by j.id limit 1)
where k.serial_key is not null order by k.place`;

interface Head {
  readonly serial_key: string;
  readonly id: string;
  readonly run_at: Date;
  readonly status: string;
  readonly is_ready: boolean;
}

export interface PromotedSerial {
  readonly ready: readonly ReadyJob[];
  /** Where to go on looking; null: the end was reached. */
  readonly cursor: string | null;
  /** When the next of the heads that were seen becomes due. */
  readonly nextDueAt: Date | null;
}

const inList = (db: Db, parameter: string, type: string): string =>
  db.dialect === 'postgres' ? `= any(cast(${parameter} as ${type}[]))` : `in (select value from json_each(${parameter}))`;
const listOf = (db: Db, values: readonly string[]): unknown => (db.dialect === 'postgres' ? values : JSON.stringify(values));

/** Makes the first jobs of the next serial keys after the cursor ready. */
export async function promoteSerial(db: Db, now: Date, cursor: string | null): Promise<PromotedSerial> {
  const heads = await db.query<Head>(HEADS, [cursor ?? '']);
  const waiting = heads.filter(({ status, is_ready }) => status === 'queued' && !is_ready);
  const due = waiting.filter(({ run_at }) => run_at <= now).map(({ id }) => id);
  const later = waiting.filter(({ run_at }) => run_at > now).map(({ run_at }) => run_at.getTime());
  return {
    ready: await makeReady(db, due, now),
    cursor: heads.length < VISITED_MAX ? null : (heads.at(-1)?.serial_key ?? null),
    nextDueAt: later.length === 0 ? null : new Date(Math.min(...later)),
  };
}

/** The next jobs of these keys, whose turn may have come. */
export async function promoteKeys(db: Db, now: Date, keys: readonly string[]): Promise<readonly ReadyJob[]> {
  if (keys.length === 0) return [];
  const heads = await db.query<{ id: string }>(
    `select min(cast(j.id as text)) as id from jobs j where ${live('j')} and j.serial_key ${inList(db, '$1', 'text')} group by j.serial_key`,
    [listOf(db, keys)],
  );
  return makeReady(
    db,
    heads.map(({ id }) => id),
    now,
  );
}

async function makeReady(db: Db, ids: readonly string[], now: Date): Promise<readonly ReadyJob[]> {
  if (ids.length === 0) return [];
  const due = `id ${inList(db, '$1', 'uuid')} and status = 'queued' and not is_ready and run_at <= $2`;
  // A job that another transaction has locked must not hold the others up.
  const text =
    db.dialect === 'postgres'
      ? `${MAKE_READY} where id = any(array(select id from jobs where ${due} order by id for update skip locked)) ${READY}`
      : `${MAKE_READY} where ${due} ${READY}`;
  try {
    return await db.query<ReadyJob>(text, [listOf(db, ids), now]);
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
  }
  // A job with an earlier id was committed later, and a sibling has the turn already: that one waits, the others do not.
  const ready: ReadyJob[] = [];
  for (const id of ids) {
    try {
      ready.push(...(await db.query<ReadyJob>(text, [listOf(db, [id]), now])));
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
    }
  }
  return ready;
}

/** Ready jobs that no worker has begun since a time, some of each queue. */
export async function overdueReady(db: Db, queues: readonly string[], since: Date): Promise<readonly ReadyJob[]> {
  const overdue: ReadyJob[] = [];
  for (const queue of queues)
    overdue.push(
      ...(await db.query<ReadyJob>(
        `select id, queue, priority from jobs where queue = $1 and status = 'queued' and is_ready and run_at <= $2 limit ${BATCH}`,
        [queue, since],
      )),
    );
  return overdue;
}

/** Which queues have ready jobs: by index, from one to the next. */
const READY_QUEUES = `with recursive queues(name) as (
  select (select queue from jobs where status = 'queued' and is_ready order by queue limit 1)
  union all
  select (select j.queue from jobs j where j.status = 'queued' and j.is_ready and j.queue > q.name order by j.queue limit 1)
  from queues q where q.name is not null
)
select name from queues where name is not null`;

const MOVE_POSTGRES = `update jobs w set queue = m.queue from json_to_recordset(cast($2 as json)) as m(name text, queue text)
  where w.name = m.name and w.id = any(array(
    select id from jobs where queue = $1 and status = 'queued' and is_ready and name in (select r.name from json_to_recordset(cast($2 as json)) as r(name text))
    limit ${BATCH} for update skip locked))
  returning w.id, w.queue, w.priority`;
const MOVE_SQLITE = `update jobs as w set queue = m.queue from (select value ->> 'name' as name, value ->> 'queue' as queue from json_each($2)) m
  where w.name = m.name and w.id in (
    select id from jobs where queue = $1 and status = 'queued' and is_ready and name in (select value ->> 'name' from json_each($2))
    limit ${BATCH})
  returning id, queue, priority`;

/**
 * Moves ready jobs out of queues that no declared job names any more, into the queue that their job names now: nobody would look for them there.
 * `declared` has the names and aliases of all jobs with their queues.
 */
export async function moveStranded(
  db: Db,
  declared: readonly { readonly name: string; readonly queue: string }[],
): Promise<readonly ReadyJob[]> {
  const known = new Set(declared.map(({ queue }) => queue));
  const stranded = (await db.query<{ name: string }>(READY_QUEUES)).filter(({ name }) => !known.has(name));
  const moved: ReadyJob[] = [];
  for (const { name } of stranded) {
    for (let full = true; full;) {
      const part = await db.query<ReadyJob>(db.dialect === 'postgres' ? MOVE_POSTGRES : MOVE_SQLITE, [name, JSON.stringify(declared)]);
      moved.push(...part);
      full = part.length === BATCH;
    }
  }
  return moved;
}
