import { type OptionRules, readOptions } from '../../options/read-options.ts';
import { filledText, flag, listOf, nullable, objectWith, rule, wholeNumber } from '../../options/value-rule.ts';
import { isJob, type JobDefinition } from './declare/job.ts';
import { JobCatalog } from './declare/job-catalog.ts';
import type { TaskQueue } from './start/task-queue.ts';

export interface JobsOptions {
  /** The application's jobs; those of its modules are added. */
  readonly jobs?: readonly JobDefinition[];
  /** Runs a worker inside the application's process. Default: false; production runs `kit jobs work`. */
  readonly worker?: boolean;
  /** How often a worker looks for due work when nothing wakes it. Default: one second. */
  readonly pollIntervalMs?: number;
  /** How long a stopping worker waits for the jobs under way before it gives them back. Default: 10 seconds. */
  readonly stopTimeoutMs?: number;
  /** How long a claim holds without being renewed. Default: a minute. Renewed four times in that time. */
  readonly leaseMs?: number;
  /** Workers remove jobs that ended before so many days, a few at a time. Default: null; they stay until `kit jobs prune`. */
  readonly retentionDays?: number | null;
  /** Runs the jobs by a queue of your own (graphile-worker, pg-boss, BullMQ) instead of `kit jobs work`. */
  readonly taskQueue?: TaskQueue;
  /** Aliases of the databases that jobs are started in. Default: `default` alone. */
  readonly databases?: readonly string[];
}

/** Complete and frozen. */
export interface JobsSettings extends Required<Omit<JobsOptions, 'jobs' | 'taskQueue'>> {
  readonly catalog: JobCatalog;
  readonly taskQueue: TaskQueue | null;
}

const DEFAULTS = {
  worker: false,
  pollIntervalMs: 1000,
  stopTimeoutMs: 10_000,
  leaseMs: 60_000,
  retentionDays: null,
  databases: ['default'] as readonly string[],
} as const;

const jobsRules: OptionRules<JobsOptions> = {
  jobs: listOf(rule('a job: job(name, options)', isJob)),
  worker: flag,
  pollIntervalMs: wholeNumber(10, 3_600_000),
  stopTimeoutMs: wholeNumber(0, 3_600_000),
  leaseMs: wholeNumber(1000, 3_600_000),
  retentionDays: nullable(wholeNumber(1, 36_500)),
  taskQueue: objectWith('a queue with enqueue(tx, jobId, options), such as graphileQueue()', 'enqueue'),
  databases: listOf(filledText, { min: 1 }),
};

/** Complete and frozen. `place` is the call as a user writes it. */
export function readJobsOptions(options: JobsOptions | undefined, place = 'jobs()'): JobsSettings {
  const { jobs = [], taskQueue, ...rest } = readOptions(place, options, jobsRules);
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
  return Object.freeze({ ...DEFAULTS, ...given, catalog: new JobCatalog(jobs), taskQueue: taskQueue ?? null });
}
