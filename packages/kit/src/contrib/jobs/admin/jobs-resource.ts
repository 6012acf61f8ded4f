import { requestFilter } from '../../../app/admin/list.ts';
import { modelView } from '../../../app/admin/model-list.ts';
import { adminDone, adminEach } from '../../../app/admin/each.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import type { AdminContext, AdminResource } from '../../../app/admin/declaration.ts';
import type { AdminRow, AdminSection, AdminValue } from '../../../app/admin/shapes.ts';
import { masked, payloadOf, sensitiveOf } from '../rows/masked-payload.ts';
import { JOB_STATUSES, jobAttempts, jobSteps } from '../models.ts';
import { attemptsOf, findJob, recordedSteps, type Job, type StoredAttempt, type StoredStepRow } from '../rows/store.ts';
import { changeRecorded } from './change-recorded.ts';
import { jobList, listJobs } from './list-store.ts';
import { databaseOf, jobState, type AdminPlace } from './place.ts';

const attemptView = modelView(jobAttempts, [
  'attempt',
  'outcome',
  { name: 'started_at', label: 'Began' },
  { name: 'duration', label: 'Took', kind: 'duration' },
  { name: 'error', kind: 'text', secondary: true },
  { name: 'worker', kind: 'code', secondary: true },
]);

const stepView = modelView(jobSteps, [
  { name: 'name', label: 'Step' },
  'attempt',
  { name: 'finished_at', label: 'Done' },
  { name: 'result', kind: 'json', secondary: true },
]);

const JOBS = ['job', 'jobs'] as const;

export function jobsResource(place: AdminPlace): AdminResource {
  return {
    name: `jobs${place.suffix}`,
    label: `Jobs${place.label}`,
    singular: 'job',
    group: 'Jobs',
    icon: 'event',
    auditedAs: 'job',
    live: true,
    columns: jobList.columns,
    filters: [
      { name: 'status', label: 'Status', kind: 'select', choices: JOB_STATUSES.map((value) => ({ value, label: value })) },
      { name: 'name', label: 'Job', kind: 'text' },
      { name: 'queue', label: 'Queue', kind: 'text' },
      { name: 'owner', label: 'Owner', kind: 'reference', of: 'user' },
      { name: 'code', label: 'Error code', kind: 'text' },
      {
        name: 'due',
        label: 'Due',
        kind: 'select',
        choices: [
          { value: 'ready', label: 'Ready to run' },
          { value: 'waiting', label: 'Waits for its time or its turn' },
        ],
      },
      { name: 'record', label: 'Record, such as order:<id>', kind: 'text' },
      { name: 'serial_key', label: 'Serial key', kind: 'text' },
      { name: 'created', label: 'Started', kind: 'time', ends: ['since', 'until'] },
      requestFilter,
    ],
    shortcuts: [{ label: 'Retry failed jobs', filters: { status: 'failed' }, action: 'retry' }],
    related: [
      { to: 'user', filter: 'owner' },
      { to: '*', filter: 'record' },
      { to: 'request', filter: requestFilter.name },
    ],
    searches: 'job id',
    creation: { refused: 'Jobs are started by the application.' },
    editable: false,
    removable: false,
    actions: [
      {
        name: 'retry',
        dryRun: 'queued again',
        label: { one: 'Retry', many: 'Retry selected' },
        tone: 'neutral',
        on: 'selection',
        confirm: 'Each is queued with all of its attempts. Recorded steps are not repeated. Only failed and cancelled jobs can be retried.',
        run: async (context, ids) =>
          adminDone(await adminEach(context, ids, (id) => changeRecorded(place, context, 'retry', id)), JOBS, 'queued again'),
      },
      {
        name: 'cancel',
        dryRun: 'cancelled, or have ended already',
        label: { one: 'Cancel the job', many: 'Cancel the jobs' },
        dismissLabel: 'Keep running',
        tone: 'bad',
        on: 'selection',
        confirm: 'A running job can no longer save anything. Jobs that have ended stay as they are.',
        run: async (context, ids) =>
          adminDone(await adminEach(context, ids, (id) => changeRecorded(place, context, 'cancel', id)), JOBS, 'cancelled or had ended'),
      },
    ],
    async list(context, query) {
      const { rows, ...page } = await listJobs(databaseOf(place, context), query);
      return { items: rows.map(jobRow), ...page };
    },
    async read(context, id) {
      const db = databaseOf(place, context);
      const job = isUuid(id) ? await findJob(db, id) : null;
      if (job === null) return null;
      const [attempts, steps] = [await attemptsOf(db, id), await recordedSteps(db, id)];
      return {
        ...jobRow(job),
        state: jobState(job),
        sections: [...factsOf(place, job, await linksOf(context, job)), attemptsSection(job, attempts), stepsSection(place, job, steps)],
        actions: job.status === 'failed' || job.status === 'cancelled' ? ['retry'] : job.finished_at === null ? ['cancel'] : [],
        removable: false,
      };
    },
  };
}

export function jobRow(job: Job): AdminRow {
  return {
    id: job.id,
    title: `${job.name} ${job.id}`,
    values: jobList.values(job, {
      status: jobState(job),
      message: job.progress_message ?? (job.status === 'failed' ? job.error_message : null),
      attempts: `${job.attempts} of ${job.attempts_max}`,
      record: job.serial_key ?? job.unique_key,
      request_id: job.request_id,
    }),
  };
}

type Links = Readonly<Record<'owner_id' | 'unique_key' | 'serial_key', AdminValue>>;

/** The owner by name, and the records that its keys name. */
async function linksOf({ linkTo, titlesOf }: AdminContext, job: Job): Promise<Links> {
  const linked = async (type: string, id: string, text: string | undefined) =>
    linkTo(type, id, (await titlesOf(type, [id])).get(id) ?? text ?? id);
  const ofKey = async (key: string | null): Promise<AdminValue> => {
    const [, type, id] = /^([a-z][a-z0-9_]*):(.+)$/.exec(key ?? '') ?? [];
    return type === undefined || id === undefined ? key : ((await linked(type, id, key ?? undefined)) ?? key);
  };
  return {
    owner_id: job.owner_id === '' ? null : ((await linked('user', job.owner_id, undefined)) ?? job.owner_id),
    unique_key: await ofKey(job.unique_key),
    serial_key: await ofKey(job.serial_key),
  };
}

function factsOf({ catalog }: AdminPlace, job: Job, links: Links): AdminSection[] {
  const [input, result] = (['input', 'result'] as const).map((part) => payloadOf(job, part, catalog()));
  const { error_code: code, error_message: message } = job;
  return [
    jobList.facts('Job', job, { ...jobRow(job).values, ...links }, [
      { name: 'started_at', label: 'Last attempt began' },
      { name: 'finished_at', label: 'Ended' },
      'priority',
      { name: 'owner_id', kind: 'link' },
      { name: 'tenant_key', label: 'Tenant', kind: 'code' },
      { name: 'unique_key', kind: 'link' },
      { name: 'serial_key', kind: 'link' },
      { name: 'worker', kind: 'code' },
      { name: 'request_id', label: 'Request id', kind: 'code' },
      'id',
    ]),
    { kind: 'json', title: 'Input', value: input },
    ...(result === null ? [] : [{ kind: 'json', title: 'Result', value: result } as const]),
    ...(code === null ? [] : [{ kind: 'text', title: 'Error', text: `${code}: ${message ?? ''}` } as const]),
  ];
}

function attemptsSection(job: Job, attempts: readonly StoredAttempt[]): AdminSection {
  const succeeded =
    job.status === 'succeeded'
      ? [
          {
            attempt: job.attempts,
            outcome: 'succeeded',
            started_at: job.started_at,
            finished_at: job.finished_at,
            error_code: null,
            error_message: null,
            worker: job.worker,
          },
        ]
      : [];
  return {
    kind: 'table',
    title: 'Attempts',
    columns: attemptView.columns,
    rows: [...attempts, ...succeeded].toReversed().map((each, index) => ({
      id: String(index),
      title: `Attempt ${each.attempt}`,
      values: attemptView.values(each, {
        outcome: { value: each.outcome, tone: each.outcome === 'succeeded' ? 'good' : each.outcome === 'cancelled' ? 'warning' : 'bad' },
        duration: each.started_at === null || each.finished_at === null ? null : each.finished_at.getTime() - each.started_at.getTime(),
        error: each.error_code === null ? null : `${each.error_code}: ${each.error_message ?? ''}`,
      }),
    })),
    empty: 'No attempt has ended yet.',
  };
}

function stepsSection({ catalog }: AdminPlace, job: Job, steps: readonly StoredStepRow[]): AdminSection {
  const known = sensitiveOf(job, catalog());
  const sensitive = known === null ? null : { names: known.stepNames };
  return {
    kind: 'table',
    title: 'Recorded steps',
    columns: stepView.columns,
    rows: steps.map((step) => ({
      id: step.name,
      title: step.name,
      values: stepView.values(step, { result: masked(step.result, sensitive) ?? null }),
    })),
    empty: 'This job has recorded no steps.',
  };
}
