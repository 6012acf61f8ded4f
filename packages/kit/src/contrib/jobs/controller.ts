import type { App } from '../../app/declare/module.ts';
import { requiredAudit } from '../../app/declare/required-audit.ts';
import { requiredDatabase } from '../../app/declare/required-database.ts';
import { requiredModule } from '../../app/declare/required-module.ts';
import type { User } from '../../auth/people/principal.ts';
import { filter } from '../../crud/declare/filter.ts';
import { CrudController } from '../../crud/serve/controller.ts';
import { databaseNamed } from '../../db/open/named-database.ts';
import { controllerOptions } from '../../http/declare/controller-options.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { route } from '../../http/declare/route.ts';
import type { ServerSentEvent } from '../../http/declare/server-sent-event.ts';
import type { Fault } from '../../options/fault.ts';
import { filledText, flag } from '../../options/value-rule.ts';
import { hasScopes } from '../../permissions/built-ins.ts';
import { jobErrors } from './errors.ts';
import { followJob } from './manage/follow-job.ts';
import { JOB_STATUSES, type JobStatus } from './models.ts';
import { jobResource } from './resource.ts';

// Sessions may do everything here; credentials that carry scopes, such as API keys, need the one of the route.
const permission = hasScopes({ allowUnscoped: true });

const JobStatusName = jsonSchema<JobStatus>({ type: 'string', enum: [...JOB_STATUSES] });

const OwnJobs = CrudController(jobResource, {
  permission,
  scope: 'jobs',
  // Every list is in the order of `jobs_of_owner`, which ends soon whatever the status.
  filters: { status: filter(JobStatusName, (status) => ({ status })), name: ['eq'], queue: ['eq'] },
  queryMethod: false,
  page: { default: 20, max: 100, count: { upTo: 10_000 } },
  operations: { retrieve: { field: 'read' }, create: false, update: false, partialUpdate: false, destroy: false },
});

/** Users see and manage their own jobs in the tenant that they act for, staff all jobs. Mounted where the app likes: `'/jobs': JobController`. */
export class JobController extends OwnJobs {
  static override readonly tags: readonly string[] = ['jobs'];
  /** The database that jobs are started in. */
  static readonly using: string = 'default';
  /** `GET` with `Accept: text/event-stream` follows the list. Each change of a job is then written to the change log: `kit migrate` creates the triggers. */
  static readonly live: boolean = false;
  static readonly [controllerOptions] = { using: filledText, live: flag };

  override list = this.wrap('list', { summary: 'List your jobs, newest first; staff lists all' });
  override read = this.wrap('read', { metadata: { jobs: 'read' } });
  override cancel = this.wrap('cancel', {
    description: 'A running job can no longer save results. Jobs that have ended do not change.',
  });
  override retry = this.wrap('retry', { description: 'The job gets all its attempts again. Recorded steps are not repeated.' });

  events = route.stream(
    '/:id/events',
    {
      permission,
      scope: 'jobs:read',
      params: this.keyParams,
      response: this.read.options.response,
      raises: [jobErrors.job_not_found],
      ends: true,
      // `mcp({ include: [JobController] })` makes tools of the others; progress comes with the call of a tool.
      tool: false,
      summary: 'Follow a job until it ends',
      description:
        'Events are called `progress`, the last one `end`. A client that reconnects with `Last-Event-ID` is sent only what is new.',
    },
    (context) => this.#follow(context),
  );

  async *#follow(context: HandlerContext<{ readonly id: string }, unknown, unknown, unknown, User>): AsyncGenerator<ServerSentEvent> {
    const { using, name } = this.constructor as typeof JobController;
    const job = await this.find(context, context.params.id);
    const lastEventId = context.request.headers['last-event-id'];
    yield* followJob(databaseNamed(context.databases, using, `${name}.using`), job, {
      show: (each) => this.present(context, each as typeof job),
      signal: context.signal,
      lastEventId: typeof lastEventId === 'string' ? lastEventId : undefined,
    });
  }

  override faults(app: App): readonly Fault[] {
    return [...requiredModule(app, 'jobs', this.constructor.name, 'jobs()'), ...super.faults(app)];
  }

  override async databaseFaults(app: App): Promise<readonly Fault[]> {
    const { using, name } = this.constructor as typeof JobController;
    const faults = [...requiredDatabase(app, 'jobs', name, using, 'jobs'), ...requiredAudit(app, name, using)];
    return faults.length > 0 ? faults : super.databaseFaults(app);
  }
}
