import { adminBuckets, type AdminBuckets, rangeFilters } from '../../../app/admin/range.ts';
import { sampled, SAMPLE_ROWS_MAX } from '../../../app/admin/sample-rows.ts';
import type { AdminContext } from '../../../app/admin/declaration.ts';
import { uuidv7LowerBound } from '../../../db/values/uuidv7.ts';
import type { AdminOverview, AdminSection, AdminTile } from '../../../app/admin/sections.ts';
import type { AdminRange } from '../../../app/admin/shapes.ts';
import type { Db } from '../../../db/engine/db.ts';
import { readStats, type JobStats } from '../rows/stats-store.ts';
import { databaseOf, type AdminPlace } from './place.ts';
import { scheduleEntries } from './schedules-resource.ts';
import { groupDigits } from '../../../app/admin/group-digits.ts';

/** Finished jobs looked at for durations, the newest: more would make the overview slow. */
const DURATIONS_MAX = 20_000;
/** Failed jobs of a range that are counted, the newest. */
const FAILED_MAX = 20_000;
const OLD_SECONDS = 300;

/** What the overview says about jobs that were started in a range of time. */
export function jobsOverview(place: AdminPlace): (context: AdminContext, range: AdminRange) => Promise<AdminOverview> {
  return async (context, range) => {
    const db = databaseOf(place, context);
    const now = context.clock.now();
    const buckets = adminBuckets(range, now);
    const stats = await readStats(db, now);
    const counts = await countsBy(db, buckets);
    return {
      title: 'Jobs',
      tiles: [...tilesOf(place, stats, counts, rangeFilters(buckets, now)), ...(await scheduleTiles(place, context))],
      charts: [
        {
          title: counts.scale > 1 ? `Jobs by start (estimated from about ${groupDigits(SAMPLE_ROWS_MAX)} jobs)` : 'Jobs by start',
          kind: 'bars',
          unit: 'count',
          buckets: buckets.starts.map((start) => start.toISOString()),
          series: [
            { name: 'Succeeded', tone: 'good', values: counts.succeeded },
            { name: 'Failed', tone: 'bad', values: counts.failed },
            { name: 'Under way', tone: 'info', values: counts.unfinished },
          ],
          empty: 'No job was started in this time.',
        },
      ],
      tables: [queuesTable(stats), await durationsTable(db, buckets)],
    };
  };
}

interface Counts {
  /** More than 1: of a sample. */
  readonly scale: number;
  readonly succeeded: number[];
  readonly failed: number[];
  readonly unfinished: number[];
}

/** Failures have an index and are counted one by one; of the rest of a busy range a sample is read. */
async function countsBy(db: Db, buckets: AdminBuckets): Promise<Counts> {
  const { rows, scale } = await sampled<{ status: string; count: number | bigint }>(db, { table: 'jobs', key: 'id' }, buckets, {
    columns: 't.status, count(*) as count',
    groups: ', t.status',
  });
  const zeros = (): number[] => buckets.starts.map(() => 0);
  const counts = { scale, succeeded: zeros(), failed: zeros(), unfinished: zeros() };
  for (const { bucket, status, count } of rows) {
    if (status === 'cancelled' || status === 'failed') continue;
    const series = status === 'succeeded' ? counts.succeeded : counts.unfinished;
    series[bucket] = (series[bucket] ?? 0) + Math.round(Number(count) * scale);
  }
  const failed = await db.query<{ created_at: Date }>(
    `select created_at from jobs where status = 'failed' and id >= $1 and id < $2 order by id desc limit ${FAILED_MAX}`,
    [uuidv7LowerBound(buckets.since), uuidv7LowerBound(buckets.until)],
  );
  for (const { created_at: at } of failed) {
    const bucket = Math.floor((at.getTime() - buckets.since.getTime()) / buckets.ms);
    if (bucket in counts.failed) counts.failed[bucket] = (counts.failed[bucket] ?? 0) + 1;
  }
  return counts;
}

function tilesOf(place: AdminPlace, stats: JobStats, counts: Counts, within: Readonly<Record<string, string>>): AdminTile[] {
  const jobs = (filters: Readonly<Record<string, string>>) => ({ resource: `jobs${place.suffix}`, filters });
  const oldest = Math.max(-1, ...stats.queues.map(({ oldest_ready_age_seconds: age }) => age ?? -1));
  const total = (name: 'ready' | 'waiting' | 'running'): number => stats.queues.reduce((sum, queue) => sum + queue[name], 0);
  const failed = counts.failed.reduce((sum, each) => sum + each, 0);
  return [
    { label: 'Ready', value: total('ready'), unit: 'count', tone: 'neutral', hint: 'May run now.', link: jobs({ due: 'ready' }) },
    { label: 'Running', value: total('running'), unit: 'count', tone: 'info', link: jobs({ status: 'running' }) },
    {
      label: 'Oldest ready',
      value: oldest < 0 ? null : oldest * 1000,
      unit: 'age_ms',
      tone: oldest > OLD_SECONDS ? 'warning' : 'neutral',
      hint: 'If it grows, too few workers run: `npx kit jobs work`.',
      link: jobs({ due: 'ready' }),
    },
    {
      label: 'Failed',
      value: failed,
      unit: 'count',
      tone: failed > 0 ? 'bad' : 'good',
      hint: 'Jobs started in the range that failed.',
      link: jobs({ status: 'failed', ...within }),
    },
  ];
}

/** Absent where the application has no schedules. */
async function scheduleTiles(place: AdminPlace, context: AdminContext): Promise<AdminTile[]> {
  const states = (await scheduleEntries(place, context)).map(({ state }) => state.value);
  if (states.length === 0) return [];
  const late = states.filter((state) => state === 'late').length;
  return [
    {
      label: 'Late schedules',
      value: late,
      unit: 'count',
      tone: late > 0 ? 'bad' : 'good',
      hint: 'Due, and no worker has started them: run `npx kit jobs work`.',
      link: { resource: `job-schedules${place.suffix}`, filters: {} },
    },
  ];
}

type Table = Extract<AdminSection, { kind: 'table' }>;

function queuesTable(stats: JobStats): Table {
  return {
    kind: 'table',
    title: 'Queues',
    columns: [
      { name: 'queue', label: 'Queue', kind: 'text' },
      { name: 'ready', label: 'Ready', kind: 'number' },
      { name: 'waiting', label: 'Waiting', kind: 'number' },
      { name: 'running', label: 'Running', kind: 'number' },
      { name: 'oldest', label: 'Oldest ready', kind: 'duration' },
    ],
    rows: stats.queues.map(({ queue, ready, waiting, running, oldest_ready_age_seconds: age }) => ({
      id: queue,
      title: queue,
      values: { queue, ready, waiting, running, oldest: age === null ? null : age * 1000 },
    })),
    empty: 'Nothing waits and nothing runs.',
  };
}

async function durationsTable(db: Db, buckets: AdminBuckets): Promise<Table> {
  const [first] = buckets.starts;
  const rows = await db.query<{ name: string; started_at: Date; finished_at: Date }>(
    `select name, started_at, finished_at from (
       select name, status, started_at, finished_at from jobs where id >= $1 and id < $2 order by id desc limit ${DURATIONS_MAX}
     ) newest where status = 'succeeded' and started_at is not null`,
    [uuidv7LowerBound(first ?? new Date(0)), uuidv7LowerBound(buckets.until)],
    { mayBeLong: 'durations of jobs' },
  );
  const byName = Map.groupBy(rows, ({ name }) => name);
  return {
    kind: 'table',
    title: 'Durations of the newest jobs',
    columns: [
      { name: 'name', label: 'Job', kind: 'text' },
      { name: 'runs', label: 'Runs', kind: 'number' },
      { name: 'p50', label: 'p50', kind: 'duration' },
      { name: 'p95', label: 'p95', kind: 'duration' },
      { name: 'p99', label: 'p99', kind: 'duration' },
    ],
    rows: [...byName].map(([name, runs]) => {
      const took = runs.map((run) => run.finished_at.getTime() - run.started_at.getTime()).sort((a, b) => a - b);
      const at = (share: number): number | null => took[Math.min(took.length - 1, Math.floor(share * took.length))] ?? null;
      return { id: name, title: name, values: { name, runs: took.length, p50: at(0.5), p95: at(0.95), p99: at(0.99) } };
    }),
    empty: 'No job has succeeded in this time.',
  };
}
