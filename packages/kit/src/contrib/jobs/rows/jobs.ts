import { moduleState } from '../../../app/assemble/module-state.ts';
import { emptyRegistry, type Registry } from '../../../app/declare/registry.ts';
import type { Clock } from '../../../db/clock.ts';
import type { Database, Db } from '../../../db/engine/db.ts';
import { Container } from '../../../di/container.ts';
import type { Log } from '../../../http/log.ts';
import type { JobMetrics } from './job-metrics.ts';
import { readJobsOptions, type JobsOptions, type JobsSettings } from '../options.ts';
import { requireArguments } from '../../../options/read-options.ts';
import { anObject, queryable } from '../../../options/value-rule.ts';

/** Everything the verbs need to know about the jobs of one database, besides the database. */
export interface Jobs {
  readonly database: Database;
  readonly settings: JobsSettings;
  readonly clock: Clock;
  readonly log: Log;
  readonly services: Container;
  readonly registry: Pick<Registry, 'audit' | 'standings' | 'tenants'>;
  /** Where the users are, which need not be where the jobs are. */
  readonly usersDatabase: Database;
  /** Undefined unless the application has metrics. */
  readonly metrics: JobMetrics | undefined;
  /** Where a job can be read; null when no JobController is mounted. */
  readonly urlOf: (id: string) => string | null;
}

const state = moduleState<Jobs>({ name: 'Jobs', setUp: 'add jobs() to the modules of createApp, or call useJobs(database)' });

export interface UseJobsOptions extends JobsOptions {
  /** The time. Default: the clock of the database. */
  readonly clock?: Clock;
  /** Where warnings and errors are written. Default: nowhere. */
  readonly log?: Log;
  /** The container that `services` of the job context come from. Default: an empty one. */
  readonly services?: Container;
}

/** Sets jobs up for a database without the toolkit's application: afterwards `startJob` and the other verbs work on it. */
export function useJobs(database: Database, options: UseJobsOptions): Jobs {
  requireArguments('useJobs()', { database, options }, { database: queryable, options: anObject });
  const { clock = database.clock, log = silentLog, services = new Container([]), ...rest } = options;
  const settings = readJobsOptions(rest, 'useJobs()');
  return bindJobs({
    database,
    settings,
    clock,
    log,
    services,
    registry: emptyRegistry,
    usersDatabase: database,
    metrics: undefined,
    urlOf: () => null,
  });
}

export function bindJobs(jobs: Jobs): Jobs {
  const frozen = Object.freeze({ ...jobs });
  state.bind(jobs.database, frozen);
  return frozen;
}

/** Ends the binding that `useJobs()` created for a database. */
export function unbindJobs(database: Database): void {
  state.release(database);
}

/** The jobs of the database that a handle or transaction belongs to. */
export function jobsOf(db: Db): Jobs {
  return state.of(db);
}

export function findJobs(database: Database): Jobs | undefined {
  return state.find(database);
}

/** By alias, for queues that carry only text. */
export function jobsNamed(using: string): Jobs {
  return state.named(using);
}

const nothing = (): undefined => undefined;

export const silentLog: Log = Object.freeze({
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  fatal: nothing,
});
