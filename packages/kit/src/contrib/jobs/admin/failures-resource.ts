import type { AdminAction, AdminContext, AdminResource } from '../../../app/admin/declaration.ts';
import { adminCount, adminEach } from '../../../app/admin/each.ts';
import { iso } from '../../../app/admin/iso.ts';
import { modelView } from '../../../app/admin/model-view.ts';
import { shortColumns, shortList } from '../../../app/admin/short-list.ts';
import type { AdminRow } from '../../../app/admin/shapes.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { jobErrors } from '../errors.ts';
import { jobRows } from '../models.ts';
import { findFailed, findJob, type Job } from '../rows/store.ts';
import { changeRecorded } from '../manage/change-recorded.ts';
import { COUNTED_MAX, countGroup, failedOf, failureGroups, type FailureGroup } from './failure-store.ts';
import { databaseOf, jobState, type AdminPlace } from './place.ts';
import { groupDigits } from '../../../app/admin/group-digits.ts';

/** Jobs that one request retries; the site asks again until none is left. */
const BATCH = 100;
const SHOWN_JOBS = 10;
const FIRST_ID = '00000000-0000-0000-0000-000000000000';

const columns = shortColumns([
  { name: 'name', label: 'Job', kind: 'text' },
  { name: 'code', label: 'Error', kind: 'code' },
  { name: 'count', label: 'Failed jobs', kind: 'number' },
  { name: 'newest', label: 'Newest', kind: 'time' },
  { name: 'message', label: 'Newest message', kind: 'text', secondary: true },
  { name: 'oldest', label: 'Oldest', kind: 'time', secondary: true },
]);

const jobView = modelView(jobRows, [
  { name: 'name', label: 'Job', kind: 'link' },
  'status',
  { name: 'progress', kind: 'progress' },
  { name: 'created_at', label: 'Started' },
]);

/** Failed jobs by name and error: a fault of a dependency is one line, and one click when it is repaired. */
export function failuresResource(place: AdminPlace): AdminResource {
  return {
    name: `job-failures${place.suffix}`,
    label: `Failed jobs${place.label}`,
    singular: 'group of failed jobs',
    plural: 'groups of failed jobs',
    group: 'Jobs',
    icon: 'failure',
    live: true,
    columns,
    filters: [],
    searches: 'job or error',
    creation: { refused: '' },
    editable: false,
    removable: false,
    actions: [retryAll(place)],
    async list(context, query) {
      const db = databaseOf(place, context);
      const rows = await Promise.all((await failureGroups(db)).map((group) => rowOf(db, group)));
      return shortList(rows, { ...query, sort: query.sort ?? { column: 'newest', descending: true } });
    },
    async read(context, id) {
      const db = databaseOf(place, context);
      const group = groupOf(id);
      const jobs = group === null ? [] : await failedOf(db, group, 'newest', SHOWN_JOBS);
      if (group === null || jobs.length === 0) return null;
      const row = await rowOf(db, group);
      return {
        ...row,
        sections: [
          { kind: 'facts', title: 'Failures', columns, values: row.values },
          {
            kind: 'table',
            title: 'Newest failed jobs',
            columns: jobView.columns,
            rows: jobs.map((job) => jobRow(place, job)),
            more: { resource: `jobs${place.suffix}`, filters: { status: 'failed', ...group } },
          },
        ],
        actions: ['retry-all'],
        removable: false,
      };
    },
  };
}

function jobRow({ suffix }: AdminPlace, job: Job): AdminRow {
  const { id, name } = job;
  return {
    id,
    title: `${name} ${id}`,
    values: jobView.values(job, { status: jobState(job), name: { resource: `jobs${suffix}`, id, text: name } }),
  };
}

async function rowOf(db: Db, group: FailureGroup): Promise<AdminRow> {
  const [[newest], [oldest], count] = await Promise.all([
    failedOf(db, group, 'newest', 1),
    failedOf(db, group, 'oldest', 1),
    countGroup(db, group),
  ]);
  return {
    id: keyOf(group),
    title: `${group.name}: ${group.code}`,
    values: {
      ...group,
      count: count ?? `at least ${groupDigits(COUNTED_MAX)}`,
      message: newest?.error_message ?? null,
      newest: iso(newest?.finished_at ?? null),
      oldest: iso(oldest?.finished_at ?? null),
    },
  };
}

function keyOf({ name, code }: FailureGroup): string {
  return `${name}:${code}`;
}

function groupOf(id: string): FailureGroup | null {
  const [, name, code] = /^([^:]+):([^]+)$/.exec(id) ?? [];
  return name === undefined || code === undefined ? null : { name, code };
}

/** Where a retry of a group goes on, and what it did: jobs that could not be retried are still failed, and are not tried twice. */
interface Progress {
  readonly group: FailureGroup;
  readonly after: string;
  readonly done: number;
}

function progressOf(id: string): Progress | null {
  const [, key = id, after = FIRST_ID, done = '0'] = /^([^]+) after ([0-9a-f-]{36}) done (\d{1,15})$/.exec(id) ?? [];
  const group = groupOf(key);
  return group === null ? null : { group, after, done: Number(done) };
}

function retryAll(place: AdminPlace): AdminAction {
  return {
    name: 'retry-all',
    label: 'Retry all',
    tone: 'neutral',
    on: 'selection',
    confirm: 'Each job is queued with all of its attempts. Recorded steps are not repeated.',
    async preview(context, ids) {
      const db = databaseOf(place, context);
      const counts = await Promise.all(ids.flatMap((id) => groupOf(id) ?? []).map((group) => countGroup(db, group)));
      const total = counts.reduce<number>((sum, count) => sum + (count ?? COUNTED_MAX), 0);
      const isMore = counts.includes(null);
      return { tone: 'info', message: `${isMore ? 'At least ' : ''}${adminCount(total, ['job is', 'jobs are'])} queued again.` };
    },
    async run(context, [id = '', ...others]) {
      const progress = progressOf(id);
      if (progress === null) throw jobErrors.job_not_found();
      const { group, after } = progress;
      const ids = await findFailed(databaseOf(place, context), group, after, BATCH);
      const result = await adminEach(context, ids, (each) => retryRecorded(place, context, each));
      const done = progress.done + result.done;
      // The rest of this group, or the next one; either takes along how many were done.
      const last = ids.length < BATCH ? undefined : ids.at(-1);
      const next = last === undefined ? others[0] : keyOf(group);
      const rest =
        next === undefined ? [] : [`${next} after ${last ?? FIRST_ID} done ${done}`, ...others.slice(last === undefined ? 1 : 0)];
      return { message: `${adminCount(done, ['job', 'jobs'])} queued again.`, failures: result.failures, rest };
    },
  };
}

function retryRecorded(place: AdminPlace, context: AdminContext, id: string): Promise<void> {
  const { principal, requestId } = context;
  return databaseOf(place, context).transaction(async (tx) => {
    const job = await findJob(tx, id);
    if (job === null) throw jobErrors.job_not_found();
    await changeRecorded({ tx, principal, requestId }, job, 'retry');
  }, CONFLICT_RETRIES);
}
