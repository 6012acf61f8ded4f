import { didYouMean } from '../../options/did-you-mean.ts';
import type { JobDefinition } from './job.ts';
import { JobCatalog } from './job-catalog.ts';
import type { TaskQueue } from './queues/task-queue.ts';

export interface JobsOptions {
  /** The application's jobs; those of its modules are added. */
  readonly jobs?: readonly JobDefinition[];
  /** Runs a worker inside the application's process. False unless given: production runs `kit jobs work`. */
  readonly worker?: boolean;
  /** How often a worker looks for due work when nothing wakes it; one second unless given. */
  readonly pollIntervalMs?: number;
  /** How long a stopping worker waits for the jobs under way before it gives them back; 10 seconds unless given. */
  readonly stopTimeoutMs?: number;
  /** How long a claim holds without being renewed; a minute unless given. Renewed four times in that time. */
  readonly leaseMs?: number;
  /** Runs the jobs by a queue of your own (graphile-worker, pg-boss, BullMQ) instead of `kit jobs work`. */
  readonly taskQueue?: TaskQueue;
  /** Aliases of the databases that jobs are started in; `default` alone unless given. */
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
  databases: ['default'] as readonly string[],
} as const;

const KNOWN = ['jobs', ...Object.keys(DEFAULTS), 'taskQueue'];

const BOUNDS: readonly (readonly [keyof typeof DEFAULTS, number, number])[] = [
  ['pollIntervalMs', 10, 3_600_000],
  ['stopTimeoutMs', 0, 3_600_000],
  ['leaseMs', 1000, 3_600_000],
];

/** Every fault is reported at once. */
export function readJobsOptions(options: JobsOptions): JobsSettings {
  const { jobs = [], taskQueue, ...rest } = options ?? {};
  const faults = Object.keys(options ?? {})
    .filter((name) => !KNOWN.includes(name))
    .map((name) => `${name} is not an option.${didYouMean(name, KNOWN) || ` The options are ${KNOWN.join(', ')}.`}`);
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
  const settings = { ...DEFAULTS, ...given };
  for (const [name, min, max] of BOUNDS) {
    const value: unknown = settings[name];
    if (!Number.isInteger(value) || (value as number) < min || (value as number) > max)
      faults.push(`${name} is ${String(value)}; use a whole number from ${min} to ${max}.`);
  }
  if (typeof settings.worker !== 'boolean') faults.push('worker must be true or false.');
  if (!Array.isArray(settings.databases) || settings.databases.length === 0)
    faults.push('databases is empty; name at least one, such as "default".');
  if (!Array.isArray(jobs)) faults.push('jobs must list the declared jobs.');
  if (taskQueue !== undefined && typeof taskQueue?.enqueue !== 'function')
    faults.push('taskQueue must have a method enqueue(tx, jobId, options).');
  if (faults.length > 0) throw new TypeError(`jobs(): ${faults.join(' ')}`);
  return Object.freeze({ ...settings, catalog: new JobCatalog(jobs), taskQueue: taskQueue ?? null });
}
