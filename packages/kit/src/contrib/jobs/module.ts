import type { App, Module } from '../../app/declare/module.ts';
import type { Check } from '../../app/declare/check.ts';
import { standingCheck } from '../../app/check/standing-check.ts';
import { StartUpError } from '../../app/check/start-up-error.ts';
import type { Database } from '../../db/engine/db.ts';
import { jobsAdmin } from './admin/admin.ts';
import { jobsCommand } from './commands/commands.ts';
import { durableHandlers } from './start/durable-handlers.ts';
import { jobErrors, StartRefused } from './errors.ts';
import type { JobDefinition } from './declare/job.ts';
import { JobCatalog } from './declare/job-catalog.ts';
import { jobMetrics, type JobMetrics } from './rows/job-metrics.ts';
import { bindJobs, unbindJobs } from './rows/jobs.ts';
import { jobMigrations } from './migrations/all.ts';
import { jobModels } from './models.ts';
import { readJobsOptions, type JobsOptions, type JobsSettings } from './options.ts';
import { jobResource } from './resource.ts';
import { recordSchedules } from './running/run-schedules.ts';
import type { JobWorker } from './running/worker.ts';
import { checkedInput } from './start/start-job.ts';
import { startJobWorker } from './manage/work-jobs.ts';

/**
 * Background jobs: the tables, `startJob`, and a worker in this process with `worker: true`. Mount JobController so that users see their own;
 * production runs `kit jobs work` beside the application.
 *
 * @example
 * ```ts
 * createApp({ modules: [jobs({ jobs: [sendInvoice], worker: true })], mount: { '/v1': { '/jobs': JobController } } });
 * ```
 */
export function jobs(options: JobsOptions = {}): Module {
  let settings = readJobsOptions(options);
  const bound: Database[] = [];
  const workers: JobWorker[] = [];
  let metrics: JobMetrics | undefined;
  return {
    name: 'jobs',
    models: jobModels,
    migrations: jobMigrations,
    databases: settings.databases,
    errors: jobErrors,
    resources: [jobResource],
    checks: [actingJobsCheck(() => settings.catalog)],
    commands: [jobsCommand],
    admin: jobsAdmin(settings.databases, () => settings.catalog),
    provides: (app) => {
      const durable = durableHandlers(app.eventHandlers);
      settings = Object.freeze({ ...settings, catalog: new JobCatalog([...(options.jobs ?? []), ...durable.jobs, ...jobsOfModules(app)]) });
      return { jobs: durable };
    },
    metrics(registry) {
      metrics = jobMetrics(
        registry,
        () => bound,
        () => settings.catalog.queues,
      );
    },
    async setup(app) {
      await checkSettings(settings, app);
      const { databases, clock, log, services, registry } = app;
      for (const name of settings.databases) {
        const database = databases[name];
        if (database === undefined) continue;
        const bindings = bindJobs({
          database,
          settings,
          clock,
          log,
          services,
          registry,
          usersDatabase: app.db,
          metrics,
          urlOf: urlOf(app),
        });
        bound.push(database);
        // Before the migrations there is nowhere to record them; a worker does it then.
        await recordSchedules(bindings).catch((error: unknown) => log.debug({ err: error }, 'could not record the schedules of jobs'));
      }
    },
    async start() {
      if (!settings.worker) return;
      for (const database of bound) workers.push(await startJobWorker(database));
    },
    async stop() {
      await Promise.all(workers.splice(0).map((worker) => worker.stop()));
      for (const database of bound.splice(0)) unbindJobs(database);
    },
  };
}

/** Only jobs that act for their owners need to know who is still a member. With webhooks, their check says it for both. */
function actingJobsCheck(catalog: () => JobCatalog): Check<App> {
  return {
    name: 'acting_jobs',
    run: (app) =>
      app.registry.events === null && catalog().definitions.some(({ actsForOwner }) => actsForOwner) ? standingCheck.run(app) : [],
  };
}

function jobsOfModules({ modules }: App): JobDefinition[] {
  return modules.flatMap((module) => (module.jobs ?? []) as readonly JobDefinition[]);
}

/** What can be known only when the application is there. Every fault is reported at once. */
async function checkSettings({ catalog, taskQueue, databases: aliases }: JobsSettings, { databases }: App): Promise<void> {
  const faults: string[] = [];
  for (const definition of catalog.definitions) {
    if (definition.schedule === null) continue;
    try {
      await checkedInput(definition, definition.schedule.input, ' of the schedule');
    } catch (error) {
      if (!(error instanceof StartRefused)) throw error;
      faults.push(error.message);
    }
  }
  for (const alias of aliases) {
    const dialect = databases[alias]?.dialect;
    if (dialect !== undefined)
      faults.push(...(taskQueue?.faults?.({ dialect, queues: catalog.queues, limited: limitedOf(catalog) }) ?? []));
  }
  if (faults.length > 0) throw new StartUpError(faults.map((message) => ({ id: 'E011', message })));
}

function limitedOf({ definitions }: JobCatalog): string[] {
  return definitions.filter(({ concurrency }) => concurrency !== undefined).map(({ name }) => name);
}

/** Where a JobController is mounted, its route says so in its metadata. */
function urlOf({ routes }: App): (id: string) => string | null {
  const path = routes.find(({ metadata }) => metadata['jobs'] === 'read')?.path;
  return (id) => (path === undefined ? null : path.replace(/:id|\{id\}/, id));
}
