// SQL of statistics.
import type { Db } from '../../db/db.ts';

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

/** Depth and age by queue. Finished jobs are not looked at, but for the failed ones. */
export async function readStats(db: Db, now: Date): Promise<JobStats> {
  const rows = await db.query<{ queue: string; ready: Count; waiting: Count; running: Count }>(
    `select queue, sum(case when status = 'queued' and is_ready then 1 else 0 end) as ready,
       sum(case when status = 'queued' and not is_ready then 1 else 0 end) as waiting, sum(case when status = 'running' then 1 else 0 end) as running
     from jobs where status in ('queued', 'running') group by queue order by queue`,
  );
  const queues: QueueStats[] = [];
  for (const { queue, ready, waiting, running } of rows) {
    const [oldest] = await db.query<{ run_at: Date }>(
      `select run_at from jobs where queue = $1 and status = 'queued' and is_ready order by run_at limit 1`,
      [queue],
    );
    const age = oldest === undefined ? null : Math.max(0, (now.getTime() - oldest.run_at.getTime()) / 1000);
    queues.push({ queue, ready: Number(ready), waiting: Number(waiting), running: Number(running), oldest_ready_age_seconds: age });
  }
  const [failed] = await db.query<{ count: Count }>(`select count(*) as count from jobs where status = 'failed'`);
  const clock = db.dialect === 'postgres' ? 'clock_timestamp()' : '$1';
  const [expired] = await db.query<{ count: Count }>(
    `select count(*) as count from jobs where claimed_until <= ${clock}`,
    db.dialect === 'postgres' ? [] : [now],
  );
  return { queues, failed: Number(failed?.count ?? 0), expired_leases: Number(expired?.count ?? 0) };
}

const GAUGES: readonly (readonly [name: Exclude<keyof QueueStats, 'queue'>, help: string])[] = [
  ['ready', 'Jobs that may run now.'],
  ['waiting', 'Jobs that wait for their time or their turn.'],
  ['running', 'Jobs that are running.'],
  ['oldest_ready_age_seconds', 'Age of the oldest job that is ready; absent when none is.'],
];

/** The statistics in the text format of Prometheus. All are gauges: pruning makes them smaller. */
export function prometheusText({ queues, failed, expired_leases: expired }: JobStats, database: string): string {
  const label = (text: string): string => text.replace(/[\\"\n]/g, '_');
  const gauge = (name: string, help: string, lines: readonly string[]): string[] => [
    `# HELP kit_jobs_${name} ${help}`,
    `# TYPE kit_jobs_${name} gauge`,
    ...lines,
  ];
  const byQueue = GAUGES.flatMap(([name, help]) =>
    gauge(
      name,
      help,
      queues.flatMap((stats) => {
        const value = stats[name];
        return value === null ? [] : [`kit_jobs_${name}{database="${label(database)}",queue="${label(stats.queue)}"} ${value}`];
      }),
    ),
  );
  const one = (name: string, help: string, value: number): string[] =>
    gauge(name, help, [`kit_jobs_${name}{database="${label(database)}"} ${value}`]);
  return [
    ...byQueue,
    ...one('failed', 'Stored jobs that failed for good.', failed),
    ...one('expired_leases', 'Jobs whose worker did not renew its lease.', expired),
  ].join('\n');
}
