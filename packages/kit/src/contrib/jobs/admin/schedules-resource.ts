import type { AdminAction, AdminContext, AdminResource } from '../../../app/admin/declaration.ts';
import { adminDone, adminEach } from '../../../app/admin/each.ts';
import { iso } from '../../../app/admin/iso.ts';
import { shortColumns, shortList } from '../../../app/admin/short-list.ts';
import type { AdminRow, AdminState } from '../../../app/admin/shapes.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { pauseSchedule, resumeSchedule, runScheduleNow } from '../manage/control-schedule.ts';
import { jobsOf } from '../rows/jobs.ts';
import { type ScheduledJob, scheduledJobs } from '../running/run-schedules.ts';
import { readTicks, type Tick } from '../running/schedule-store.ts';
import { findJob, type Job } from '../rows/store.ts';
import { databaseOf, jobState, type AdminPlace } from './place.ts';

/** A worker looks every few seconds: a tick that is due longer waits for one. */
const LATE_MS = 60_000;

const columns = shortColumns([
  { name: 'name', label: 'Job', kind: 'text' },
  { name: 'state', label: 'State', kind: 'state' },
  { name: 'next_run', label: 'Next run', kind: 'time' },
  { name: 'last_result', label: 'Last result', kind: 'state' },
  { name: 'last_run', label: 'Last run', kind: 'time' },
  { name: 'cron', label: 'Schedule', kind: 'code', secondary: true },
  { name: 'time_zone', label: 'Time zone', kind: 'text', secondary: true },
]);

/** The declared schedules of a database, by name. */
export async function scheduleEntries(place: AdminPlace, context: AdminContext): Promise<Entry[]> {
  const db = databaseOf(place, context);
  const ticks = new Map((await readTicks(db)).map((tick) => [tick.name, tick]));
  const now = context.clock.now();
  return Promise.all(
    scheduledJobs(jobsOf(db))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .map(async (definition) => entryOf(db, definition, ticks.get(definition.name), now)),
  );
}

/** The recurring jobs of the application: when they run next, how the last run ended, and the switch that pauses them. */
export function schedulesResource(place: AdminPlace): AdminResource {
  return {
    name: `job-schedules${place.suffix}`,
    label: `Schedules${place.label}`,
    singular: 'schedule',
    group: 'Jobs',
    icon: 'clock',
    auditedAs: 'job_schedule',
    live: true,
    columns,
    filters: [],
    searches: 'job',
    creation: { refused: 'Schedules are declared in code: `job(name, { schedule })`.' },
    editable: false,
    removable: false,
    actions: [
      action(place, 'run-now', {
        label: { one: 'Run now', many: 'Run selected now' },
        confirm: 'Starts the job once, with the input of the schedule. The next run stays as planned.',
        words: 'started',
        audited: 'job_schedule.run',
        work: runScheduleNow,
      }),
      action(place, 'pause', {
        label: { one: 'Pause', many: 'Pause selected' },
        confirm:
          'No worker starts the job until the schedule is resumed. Runs that fall into the pause are skipped. A running job goes on.',
        words: 'paused',
        audited: 'job_schedule.paused',
        work: pauseSchedule,
      }),
      action(place, 'resume', {
        label: { one: 'Resume', many: 'Resume selected' },
        confirm: 'The next run starts at its time. Runs that fell into the pause are not started.',
        words: 'resumed',
        audited: 'job_schedule.resumed',
        work: resumeSchedule,
      }),
    ],
    list: async (context, query) =>
      shortList(
        (await scheduleEntries(place, context)).map(({ row }) => row),
        query,
      ),
    titles: async (context, ids) =>
      new Map((await scheduleEntries(place, context)).filter(({ row }) => ids.includes(row.id)).map(({ row }) => [row.id, row.title])),
    async read(context, id) {
      const found = (await scheduleEntries(place, context)).find(({ row }) => row.id === id);
      if (found === undefined) return null;
      const { row, definition, lastJob, state } = found;
      const isPaused = state.value === 'paused';
      return {
        ...row,
        state,
        sections: [
          {
            kind: 'facts',
            title: 'Schedule',
            columns: [
              ...columns,
              { name: 'missed', label: 'Missed runs', kind: 'text' },
              { name: 'queue', label: 'Queue', kind: 'text' },
              { name: 'last_job', label: 'Last job', kind: 'link' },
            ],
            values: {
              ...row.values,
              missed: definition.schedule.missed === 'once' ? 'one job for all of them' : 'skipped',
              queue: definition.queue,
              last_job: lastJob === null ? null : { resource: `jobs${place.suffix}`, id: lastJob.id, text: lastJob.id },
            },
          },
        ],
        actions: ['run-now', isPaused ? 'resume' : 'pause'],
        removable: false,
      };
    },
  };
}

interface Entry {
  readonly row: AdminRow;
  readonly definition: ScheduledJob;
  readonly lastJob: Job | null;
  readonly state: AdminState;
}

async function entryOf(db: Db, definition: ScheduledJob, tick: Tick | undefined, now: Date): Promise<Entry> {
  const { name, schedule } = definition;
  const pausedAt = tick?.paused_at ?? null;
  const next = schedule.nextTick(tick?.last_tick ?? now);
  const lastJob = tick?.last_job_id === undefined || tick.last_job_id === null ? null : await findJob(db, tick.last_job_id);
  const state = stateOf(pausedAt, next, now);
  return {
    definition,
    lastJob,
    state,
    row: {
      id: name,
      title: name,
      values: {
        name,
        state,
        next_run: pausedAt === null ? iso(next) : null,
        last_result: lastJob === null ? null : jobState(lastJob),
        last_run: iso(lastJob?.created_at ?? null),
        cron: schedule.cron,
        time_zone: schedule.timeZone,
      },
    },
  };
}

function stateOf(pausedAt: Date | null, next: Date | null, now: Date): AdminState {
  if (pausedAt !== null) return { value: 'paused', tone: 'warning', hint: `Since ${pausedAt.toISOString()}.` };
  if (next === null) return { value: 'ended', tone: 'neutral', hint: 'The schedule has no further run.' };
  return now.getTime() - next.getTime() > LATE_MS
    ? { value: 'late', tone: 'bad', hint: 'It is due, and no worker has started it. Run `npx kit jobs work`.' }
    : { value: 'active', tone: 'good' };
}

interface ActionSettings {
  readonly label: AdminAction['label'];
  readonly confirm: string;
  readonly words: string;
  readonly audited: string;
  /** False: nothing had to be done. */
  readonly work: (tx: Db, name: string) => Promise<string | boolean>;
}

function action(place: AdminPlace, name: string, { label, confirm, words, audited, work }: ActionSettings): AdminAction {
  return {
    name,
    label,
    tone: 'neutral',
    on: 'selection',
    confirm,
    async run(context, ids) {
      const result = await adminEach(context, ids, async (id) => {
        await databaseOf(place, context).transaction(async (tx) => {
          const did = await work(tx, id);
          if (did === false) return;
          const { principal, requestId } = context;
          const entry = { actor: principal, action: audited, target_type: 'job_schedule', target_id: id, request_id: requestId };
          await context.audit?.record(tx, [{ ...entry, ...(typeof did === 'string' ? { metadata: { job_id: did } } : {}) }]);
        }, CONFLICT_RETRIES);
      });
      return adminDone(result, ['schedule', 'schedules'], words);
    },
  };
}
