// SQL of statistics.
import type { Db } from '../../../db/engine/db.ts';

export interface QueueStats {
  readonly queue: string;
  readonly ready: number;
  readonly waiting: number;
  readonly running: number;
  /** Of the oldest job that is ready; null when none is. */
  readonly oldest_ready_age_seconds: number | null;
}

export interface JobStats {
  readonly queues: readonly QueueStats[];
  readonly failed: number;
  readonly expired_leases: number;
}

type Count = number | bigint;

/** Statistics are read every few seconds: a backlog of millions is not counted to its end. */
const COUNTED_MAX = 100_000;
const QUEUES_MAX = 100;

const READY = `status = 'queued' and is_ready`;
const NEXT_QUEUE = `select queue from jobs where ${READY} and queue > $1 order by queue limit 1`;
// The lowest priority first: the job that has waited longest is among those.
const READY_OF_QUEUE = `select count(*) as ready, min(run_at) as oldest from (
  select run_at from jobs where queue = $1 and ${READY} order by priority limit ${COUNTED_MAX}
) r`;
// Two conditions, because waiting jobs are in two partial indexes.
const WAITING = `select queue, count(*) as count from (
  select queue from (
    select queue from jobs where status = 'queued' and not is_ready and serial_key is null
    union all
    select queue from jobs where serial_key is not null and (finished_at is null or claimed_until is not null) and status = 'queued' and not is_ready
  ) w limit ${COUNTED_MAX}
) c group by queue`;
const RUNNING = `select queue, count(*) as count from jobs where claimed_until is not null and status = 'running' group by queue`;
const FAILED = `select count(*) as count from (select id from jobs where status = 'failed' limit ${COUNTED_MAX}) f`;

/** Queues with ready jobs: how many, and since when the oldest of them may run. */
async function readyQueues(db: Db): Promise<{ readonly queue: string; readonly count: number; readonly oldest: Date | null }[]> {
  const found: { queue: string; count: number; oldest: Date | null }[] = [];
  while (found.length < QUEUES_MAX) {
    const [next] = await db.query<{ queue: string }>(NEXT_QUEUE, [found.at(-1)?.queue ?? '']);
    if (next === undefined) break;
    const [row] = await db.query<{ ready: Count; oldest: Date | string | null }>(READY_OF_QUEUE, [next.queue]);
    // SQLite has no type for the result of min().
    const oldest = row === undefined || row.oldest === null ? null : new Date(row.oldest);
    found.push({ queue: next.queue, count: Number(row?.ready ?? 0), oldest });
  }
  return found;
}

/** Since when the ready job that has waited longest may run; null: none is ready. */
export async function oldestReady(db: Db): Promise<Date | null> {
  const times = (await readyQueues(db)).flatMap(({ oldest }) => (oldest === null ? [] : [oldest.getTime()]));
  return times.length === 0 ? null : new Date(Math.min(...times));
}

/** Depth and age by queue, each count up to 100,000. Only partial indexes are read, so finished jobs cost nothing. */
export async function readStats(db: Db, now: Date): Promise<JobStats> {
  const ready = new Map<string, { readonly ready: number; readonly ageSeconds: number | null }>();
  for (const { queue, count, oldest } of await readyQueues(db)) {
    const ageMs = oldest === null ? null : now.getTime() - oldest.getTime();
    ready.set(queue, { ready: count, ageSeconds: ageMs === null ? null : Math.max(0, ageMs / 1000) });
  }
  const waiting = await countsByQueue(db, WAITING);
  const running = await countsByQueue(db, RUNNING);
  const [failed] = await db.query<{ count: Count }>(FAILED);
  const clock = db.dialect === 'postgres' ? 'clock_timestamp()' : '$1';
  const [expired] = await db.query<{ count: Count }>(
    `select count(*) as count from jobs where claimed_until <= ${clock}`,
    db.dialect === 'postgres' ? [] : [now],
  );
  const queues = [...new Set([...ready.keys(), ...waiting.keys(), ...running.keys()])].toSorted().map((queue): QueueStats => {
    const { ready: count = 0, ageSeconds = null } = ready.get(queue) ?? {};
    return {
      queue,
      ready: count,
      waiting: waiting.get(queue) ?? 0,
      running: running.get(queue) ?? 0,
      oldest_ready_age_seconds: ageSeconds,
    };
  });
  return { queues, failed: Number(failed?.count ?? 0), expired_leases: Number(expired?.count ?? 0) };
}

async function countsByQueue(db: Db, text: string): Promise<ReadonlyMap<string, number>> {
  const rows = await db.query<{ queue: string; count: Count }>(text);
  return new Map(rows.map(({ queue, count }) => [queue, Number(count)]));
}

/** The gauges by queue. */
export const queueGauges: readonly (readonly [name: Exclude<keyof QueueStats, 'queue'>, help: string])[] = [
  ['ready', 'Jobs that may run now; counted up to 100,000.'],
  ['waiting', 'Jobs that wait for their time or their turn; counted up to 100,000.'],
  ['running', 'Jobs that are running.'],
  ['oldest_ready_age_seconds', 'Age of the oldest job that is ready; 0 when none is.'],
];

/** The statistics in the text format of Prometheus. All are gauges: pruning makes them smaller. */
export function prometheusText({ queues, failed, expired_leases: expired }: JobStats, database: string): string {
  const label = (text: string): string => text.replace(/[\\"\n]/g, '_');
  const gauge = (name: string, help: string, lines: readonly string[]): string[] => [
    `# HELP kit_jobs_${name} ${help}`,
    `# TYPE kit_jobs_${name} gauge`,
    ...lines,
  ];
  const byQueue = queueGauges.flatMap(([name, help]) =>
    gauge(
      name,
      help,
      queues.map((stats) => `kit_jobs_${name}{database="${label(database)}",queue="${label(stats.queue)}"} ${stats[name] ?? 0}`),
    ),
  );
  const one = (name: string, help: string, value: number): string[] =>
    gauge(name, help, [`kit_jobs_${name}{database="${label(database)}"} ${value}`]);
  return [
    ...byQueue,
    ...one('failed', 'Stored jobs that failed permanently.', failed),
    ...one('expired_leases', 'Jobs whose worker did not renew its lease.', expired),
  ].join('\n');
}
