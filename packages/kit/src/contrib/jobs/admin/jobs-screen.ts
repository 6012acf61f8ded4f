import type { AdminContext, AdminResource } from '../../../app/admin/declaration.ts';
import { modelView } from '../../../app/admin/model-view.ts';
import type { AdminSection } from '../../../app/admin/sections.ts';
import type { AdminColumn, AdminValue } from '../../../app/admin/shapes.ts';
import { keyTimeFilter } from '../../../screens/key-time.ts';
import { REQUEST_FILTER, requestFilter } from '../../../screens/request-filter.ts';
import { screen } from '../../../screens/screen.ts';
import { section } from '../../../screens/screen-words.ts';
import { jobAttempts, jobSteps, JOB_STATUSES } from '../models.ts';
import { jobResource } from '../resource.ts';
import { masked, payloadOf, sensitiveOf } from '../rows/masked-payload.ts';
import { attemptsOf, recordedSteps, type Job, type StoredAttempt, type StoredStepRow } from '../rows/store.ts';
import { dueWhere, statusWhere } from './job-conditions.ts';
import { databaseOf, jobState, type AdminPlace } from './place.ts';

const attemptView = modelView(jobAttempts, [
  'attempt',
  'outcome',
  { name: 'started_at', label: 'Started' },
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

/** The jobs of a database in the admin site. */
export function jobsScreen(place: AdminPlace): AdminResource {
  return screen(jobResource, {
    name: `jobs${place.suffix}`,
    label: `Jobs${place.label}`,
    singular: 'job',
    plural: 'jobs',
    group: 'Jobs',
    icon: 'job',
    live: true,
    using: place.database,
    title: 'name',
    columns: [
      { name: 'name', label: 'Job' },
      'status',
      { name: 'progress', kind: 'progress' },
      { name: 'progress_message', label: 'Message', secondary: true },
      { name: 'error', kind: 'text', secondary: true },
      { name: 'queue', secondary: true },
      { name: 'attempts', kind: 'text', secondary: true },
      { name: 'run_at', label: 'Due', secondary: true },
      { name: 'created_at', label: 'Started', secondary: false },
    ],
    facts: [
      { name: 'started_at', label: 'Last attempt started' },
      { name: 'finished_at', label: 'Ended' },
      'priority',
      { name: 'tenant_key', label: 'Tenant', kind: 'code' },
      { name: 'worker', kind: 'code' },
      { name: 'request_id', label: 'Request id', kind: 'code' },
      { name: 'id', kind: 'code' },
    ],
    state: 'status',
    cells: {
      status: (row) => jobState({ status: row.status, error_message: errorOf(row)?.message ?? null }),
      error: (row) => {
        const error = errorOf(row);
        return error === null ? null : `${error.code}: ${error.message}`;
      },
      attempts: ({ attempts, attempts_max: max }) => `${attempts} of ${max}`,
      // The timeline of another record leaves out jobs about a record of its kind.
      record: ({ serial_key: serial, unique_key: unique }) => serial ?? unique,
    },
    filters: [
      {
        name: 'status',
        label: 'Status',
        kind: 'select',
        choices: JOB_STATUSES.map((value) => ({ value, label: value })),
        where: (value, { databases }) => statusWhere(databaseOf(place, { databases }), value),
        isIndexed: (value) => value === 'queued' || value === 'running' || value === 'failed',
      },
      { name: 'name', label: 'Job', kind: 'text', where: (name) => ({ name }) },
      { name: 'queue', label: 'Queue', kind: 'text', where: (queue) => ({ queue }) },
      { name: 'owner', label: 'Owner', kind: 'reference', of: 'user', where: (id) => ({ owner_id: { eq: id, ne: '' } }), isIndexed: true },
      {
        name: 'tenant',
        label: 'Tenant',
        kind: 'reference',
        of: 'tenant',
        where: (id) => ({ tenant_key: { eq: id, ne: '' } }),
        isIndexed: true,
      },
      { name: 'code', label: 'Error code', kind: 'text', where: (code) => ({ error_code: code }) },
      {
        name: 'due',
        label: 'Due',
        kind: 'select',
        choices: [
          { value: 'ready', label: 'Ready to run' },
          { value: 'waiting', label: 'Waits for its time or its turn' },
        ],
        where: (value, { databases }) => dueWhere(databaseOf(place, { databases }), value),
        isIndexed: true,
      },
      {
        name: 'record',
        label: 'Record, such as order:<id>',
        kind: 'text',
        where: (key) => ({ or: [{ serial_key: key }, { unique_key: key }] }),
        isIndexed: true,
      },
      { name: 'serial_key', label: 'Serial key', kind: 'text', where: (key) => ({ serial_key: key }), isIndexed: true },
      keyTimeFilter({ name: 'created', label: 'Started' }),
      requestFilter('jobs'),
    ],
    shortcuts: [{ label: 'Retry failed jobs', filters: { status: 'failed' }, action: 'retry' }],
    related: [
      { to: 'user', filter: 'owner' },
      { to: 'tenant', filter: 'tenant', column: 'tenant_key' },
      { to: '*', filter: 'record' },
      { to: 'request', filter: REQUEST_FILTER },
    ],
    searches: 'job id',
    search: [],
    creation: { refused: 'Jobs are started by the application.' },
    removable: false,
    actions: [
      {
        name: 'retry',
        label: { one: 'Retry', many: 'Retry selected' },
        confirm: 'Each is queued with all of its attempts. Recorded steps are not repeated. Only failed and cancelled jobs can be retried.',
        done: 'queued again',
        when: ({ status }) => status === 'failed' || status === 'cancelled',
      },
      {
        name: 'cancel',
        label: { one: 'Cancel the job', many: 'Cancel the jobs' },
        dismissLabel: 'Keep running',
        tone: 'bad',
        confirm: 'A running job can no longer save anything. Jobs that have ended stay as they are.',
        done: 'cancelled or had ended',
        when: ({ finished_at: end }) => end === null,
      },
    ],
    sections: [
      section<Job>(({ context, row }) => linksSection(context, row)),
      section<Job>(({ row }) => payloadSections(place, row)),
      section<Job>(async ({ context, row }) => attemptsSection(row, await attemptsOf(databaseOf(place, context), row.id))),
      section<Job>(async ({ context, row }) => stepsSection(place, row, await recordedSteps(databaseOf(place, context), row.id))),
    ],
  });
}

/** The computed field. */
function errorOf(row: object): { readonly code: string; readonly message: string } | null {
  return (row as { readonly error?: { readonly code: string; readonly message: string } | null }).error ?? null;
}

const LINKS: readonly AdminColumn[] = [
  { name: 'owner_id', label: 'Owner', kind: 'link' },
  { name: 'serial_key', label: 'Serial key', kind: 'link' },
  { name: 'unique_key', label: 'Unique key', kind: 'link' },
];

/** The owner by name, and the records that its keys name. */
async function linksSection({ linkTo, titlesOf }: AdminContext, job: Job): Promise<AdminSection> {
  const linked = async (type: string, id: string, text: string): Promise<AdminValue> =>
    linkTo(type, id, (await titlesOf(type, [id])).get(id) ?? text) ?? text;
  const ofKey = async (key: string | null): Promise<AdminValue> => {
    const [, type, id] = /^([a-z][a-z0-9_]*):(.+)$/.exec(key ?? '') ?? [];
    return type === undefined || id === undefined || key === null ? key : linked(type, id, key);
  };
  return {
    kind: 'facts',
    title: 'Owner and keys',
    columns: LINKS,
    values: {
      owner_id: job.owner_id === '' ? null : await linked('user', job.owner_id, job.owner_id),
      serial_key: await ofKey(job.serial_key),
      unique_key: await ofKey(job.unique_key),
    },
  };
}

function payloadSections({ catalog }: AdminPlace, job: Job): AdminSection[] {
  const [input, result] = (['input', 'result'] as const).map((part) => payloadOf(job, part, catalog()));
  return [
    { kind: 'json', title: 'Input', value: input },
    ...(result === null ? [] : [{ kind: 'json', title: 'Result', value: result } as const]),
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
