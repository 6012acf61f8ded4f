import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { App } from '../../app/declare/module.ts';
import { requiredDatabase } from '../../app/declare/required-database.ts';
import { requiredModule } from '../../app/declare/required-module.ts';
import type { Fault } from '../../options/fault.ts';
import { databaseNamed } from '../../db/open/named-database.ts';
import { getOrCreateSecret } from '../../db/rows/secrets.ts';
import { Cursors } from '../../db/sql/keyset/cursor.ts';
import type { Database, Db } from '../../db/engine/db.ts';
import type { User } from '../../auth/people/principal.ts';
import { Controller } from '../../http/compile/controller.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import { route } from '../../http/declare/route.ts';
import { hasScopes } from '../../permissions/built-ins.ts';
import { cancelJob } from './manage/cancel.ts';
import { jobErrors } from './errors.ts';
import { followJob } from './manage/follow-job.ts';
import { jobRecord, type JobRecord } from './rows/job-record.ts';
import { jobsOf } from './rows/jobs.ts';
import { listJobs } from './rows/list-jobs.ts';
import { retryJob } from './manage/retry.ts';
import { JobId, JobOut, JobPage, JobQuery } from './schemas.ts';
import { findJob, type Job, type JobScope } from './rows/store.ts';
import { controllerOptions } from '../../http/declare/controller-options.ts';
import { filledText } from '../../options/value-rule.ts';

type Context = HandlerContext<unknown, unknown, unknown, unknown, User>;

// Sessions may do everything here; credentials that carry scopes, such as API keys, need the one of the route.
const permission = hasScopes({ allowUnscoped: true });
const reads = { permission, scope: 'jobs:read' } as const;
const writes = { permission, scope: 'jobs:write' } as const;
const notFound = [jobErrors.job_not_found] as const;
const retryRefusals = [jobErrors.job_not_retryable, jobErrors.job_still_running, jobErrors.unique_key_taken] as const;

/** Users see and manage their own jobs in the tenant that they act for, staff all jobs. Mounted where the app likes: `'/jobs': JobController`. */
export class JobController extends Controller {
  static override readonly tags: readonly string[] = ['jobs'];
  /** The database that jobs are started in. */
  static readonly using: string = 'default';
  static readonly [controllerOptions] = { using: filledText };
  // A subclass whose install() forgets this one's shows too few jobs, not too many.
  #hasTenants = true;

  list = route.get(
    '/',
    { ...reads, query: JobQuery, response: JobPage, summary: 'List your jobs, newest first; staff lists all' },
    async (context) => {
      const db = this.#db(context);
      const { catalog } = jobsOf(db).settings;
      const cursors = new Cursors([await getOrCreateSecret(context.db, 'job cursors')]);
      const page = await listJobs(db, cursors, await this.#scope(context), context.query);
      return { ...page, items: page.items.map((job) => jobRecord(job, catalog)) };
    },
  );

  read = route.get(
    '/:id',
    { ...reads, params: JobId, response: JobOut, raises: notFound, metadata: { jobs: 'read' }, summary: 'Read a job' },
    async (context) => this.#shown(await this.#find(context, this.#db(context), context.params.id), this.#db(context)),
  );

  cancel = route.post(
    '/:id/cancel',
    {
      ...writes,
      params: JobId,
      response: JobOut,
      status: 200,
      raises: notFound,
      summary: 'Cancel a job',
      description: 'A running job can no longer save results. Jobs that have ended do not change.',
    },
    (context) => this.#change(context, context.params.id, cancelJob),
  );

  retry = route.post(
    '/:id/retry',
    {
      ...writes,
      params: JobId,
      response: JobOut,
      status: 200,
      raises: [...notFound, ...retryRefusals],
      summary: 'Retry a failed or cancelled job',
      description: 'The job gets all its attempts again. Recorded steps are not repeated.',
    },
    (context) => this.#change(context, context.params.id, retryJob),
  );

  events = route.stream(
    '/:id/events',
    {
      ...reads,
      params: JobId,
      response: JobOut,
      raises: notFound,
      ends: true,
      summary: 'Follow a job until it ends',
      description:
        'Events are called `progress`, the last one `end`. A client that reconnects with `Last-Event-ID` is sent only what is new.',
    },
    (context) => this.#follow(context, context.params.id),
  );

  async *#follow(context: Context, id: string): AsyncGenerator<{ readonly data: JobRecord }> {
    const db = this.#db(context);
    const job = await this.#find(context, db, id);
    const lastEventId = context.request.headers['last-event-id'];
    yield* followJob(db, job, {
      catalog: jobsOf(db).settings.catalog,
      signal: context.signal,
      lastEventId: typeof lastEventId === 'string' ? lastEventId : undefined,
    });
  }

  async #change(context: Context, id: string, change: (tx: Db, id: string) => Promise<Job>): Promise<JobRecord> {
    // Before the transaction: finding the tenant may ask the database.
    const scope = await this.#scope(context);
    return this.#db(context).transaction(async (tx) => {
      const { id: found } = await findJobOf(tx, scope, id);
      return this.#shown(await change(tx, found), tx);
    }, CONFLICT_RETRIES);
  }

  async #find(context: Context, db: Db, id: string): Promise<Job> {
    return findJobOf(db, await this.#scope(context), id);
  }

  /** Null: staff, who see all jobs. */
  async #scope({ user, caller }: Context): Promise<JobScope | null> {
    if (user.is_staff) return null;
    return { owner: user.id, tenantKey: this.#hasTenants ? ((await caller()).tenant ?? '') : null };
  }

  #shown(job: Job, db: Db): JobRecord {
    return jobRecord(job, jobsOf(db).settings.catalog);
  }

  #db({ databases }: Pick<Context, 'databases'>): Database {
    const { using, name } = this.constructor as typeof JobController;
    return databaseNamed(databases, using, `${name}.using`);
  }

  install({ hasTenants }: App): void {
    this.#hasTenants = hasTenants;
  }

  faults(app: App): readonly Fault[] {
    return requiredModule(app, 'jobs', this.constructor.name, 'jobs()');
  }

  async databaseFaults(app: App): Promise<readonly Fault[]> {
    const { using, name } = this.constructor as typeof JobController;
    return requiredDatabase(app, 'jobs', name, using, 'jobs');
  }
}

/** A job of another owner, or of another tenant, looks exactly like a missing one. */
async function findJobOf(db: Db, scope: JobScope | null, id: string): Promise<Job> {
  const job = await findJob(db, id);
  if (job === null || (scope !== null && !isOf(job, scope))) throw jobErrors.job_not_found();
  return job;
}

function isOf(job: Job, { owner, tenantKey }: JobScope): boolean {
  return job.owner_id === owner && (tenantKey === null || job.tenant_key === tenantKey);
}
