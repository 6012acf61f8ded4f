import type { Db } from '../../../db/engine/db.ts';
import type { Counter, Histogram, MetricRegistry } from '../../../observe/metric-registry.ts';
import { queueGauges, readStats, type JobStats } from './stats-store.ts';

/** What can come of a run. `released`: given back by a stop or an older version of the code; `lost`: cancelled, or its lease ended. */
export const RUN_OUTCOMES = ['succeeded', 'retrying', 'failed', 'released', 'lost'] as const;
export type RunOutcome = (typeof RUN_OUTCOMES)[number];

/** A job may take as long as a request, or an hour. */
const RUN_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600];
/** Several gauges show one reading, and several processes are scraped: each asks the database this often. */
const READING_MS_MAX = 5000;

/** What the workers of this process count. */
export interface JobMetrics {
  readonly runs: Counter<'database' | 'queue' | 'outcome'>;
  readonly runSeconds: Histogram<'database' | 'queue'>;
  readonly claimSeconds: Histogram<'database' | 'queue'>;
}

/** `databases` are those that jobs are set up for, once they are open; `queues` are those of the application's jobs. */
export function jobMetrics(registry: MetricRegistry, databases: () => readonly Db[], queues: () => readonly string[]): JobMetrics {
  const database = { max: 20 };
  const queue = { max: 50 };
  const readings = new WeakMap<Db, { readonly at: number; readonly reading: Promise<JobStats> }>();
  const reading = (db: Db): Promise<JobStats> => {
    const known = readings.get(db);
    if (known !== undefined && performance.now() - known.at < READING_MS_MAX) return known.reading;
    const next = readStats(db, db.clock.now());
    readings.set(db, { at: performance.now(), reading: next });
    // A reading that failed is not worth keeping.
    next.catch(() => readings.delete(db));
    return next;
  };
  for (const [name, help] of queueGauges)
    registry.gauge({
      name: `kit_jobs_${name}`,
      help,
      labels: { database, queue },
      read: async () => {
        const stats = await Promise.all(databases().map(async (db) => ({ using: db.using, found: (await reading(db)).queues })));
        return stats.flatMap(({ using, found }) => {
          // A queue without jobs is shown too, as 0.
          const values = new Map(queues().map((each) => [each, 0]));
          for (const each of found) values.set(each.queue, each[name] ?? 0);
          return [...values].map(([each, value]) => ({ labels: { database: using, queue: each }, value }));
        });
      },
    });
  const gauge = (name: string, help: string, value: (stats: JobStats) => number): void =>
    registry.gauge({
      name,
      help,
      labels: { database },
      read: () => Promise.all(databases().map(async (db) => ({ labels: { database: db.using }, value: value(await reading(db)) }))),
    });
  gauge('kit_jobs_failed', 'Stored jobs that failed permanently; counted up to 100,000.', ({ failed }) => failed);
  gauge('kit_jobs_expired_leases', 'Jobs whose worker did not renew its lease.', ({ expired_leases: expired }) => expired);
  return {
    runs: registry.counter({
      name: 'kit_jobs_runs_total',
      help: 'Runs of jobs, by outcome.',
      labels: { database, queue, outcome: RUN_OUTCOMES },
    }),
    runSeconds: registry.histogram({
      name: 'kit_jobs_run_duration_seconds',
      help: 'Time one run of a job took.',
      labels: { database, queue },
      buckets: RUN_SECONDS,
    }),
    claimSeconds: registry.histogram({
      name: 'kit_jobs_claim_duration_seconds',
      help: 'Time it took to find and claim ready jobs.',
      labels: { database, queue },
    }),
  };
}
