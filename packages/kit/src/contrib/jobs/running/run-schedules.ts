import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import { isLockTimeout, limitLockWait, LOCKED_MS } from '../../../work/lock-patience.ts';
import type { JobDefinition } from '../declare/job.ts';
import type { Jobs } from '../rows/jobs.ts';
import type { Schedule } from '../declare/schedule.ts';
import { decideTick } from '../declare/schedule.ts';
import { startJob } from '../start/start-job.ts';
import { advanceTick, beginSchedule, changeSchedule, readTicks, recordRun, type Tick } from './schedule-store.ts';

export type ScheduledJob = JobDefinition & { readonly schedule: Schedule };

export function scheduledJobs({ settings }: Jobs): readonly ScheduledJob[] {
  return settings.catalog.definitions.filter((definition): definition is ScheduledJob => definition.schedule !== null);
}

/** Starts the recurring jobs that are due. Returns when the next one is; null when there is none. */
export async function runSchedules(jobs: Jobs): Promise<Date | null> {
  const scheduled = scheduledJobs(jobs);
  if (scheduled.length === 0) return null;
  const { database, clock } = jobs;
  const ticks = new Map((await readTicks(database)).map((tick) => [tick.name, tick]));
  const next: number[] = [];
  for (const definition of scheduled) {
    const now = clock.now();
    const following = await nextTick(jobs, definition, ticks.get(definition.name), now);
    if (following !== null) next.push(following.getTime());
  }
  return next.length === 0 ? null : new Date(Math.min(...next));
}

/** Starts a recurring job if it is due. A schedule that another transaction has locked does not hold up other work: it is tried again soon. */
async function nextTick(jobs: Jobs, definition: ScheduledJob, stored: Tick | undefined, now: Date): Promise<Date | null> {
  try {
    const last = await lastTickOf(jobs, definition, stored, now);
    return definition.schedule.nextTick(await startDue(jobs, definition, last, now));
  } catch (error) {
    if (!isLockTimeout(error)) throw error;
    jobs.log.warn({ job: definition.name }, 'another transaction has locked the schedule of a recurring job');
    return new Date(now.getTime() + LOCKED_MS);
  }
}

/** Records schedules that are new or changed: their ticks count from when the application knows them, not from when a worker first looks. */
export async function recordSchedules(jobs: Jobs): Promise<void> {
  const scheduled = scheduledJobs(jobs);
  if (scheduled.length === 0) return;
  const ticks = new Map((await readTicks(jobs.database)).map((tick) => [tick.name, tick]));
  for (const definition of scheduled) await lastTickOf(jobs, definition, ticks.get(definition.name), jobs.clock.now());
}

/** When a process first saw that the stored schedule of a job is another one. */
const firstSeen = new WeakMap<ScheduledJob, Date>();

/** Ticks from before the schedule existed are not missed ones. */
async function lastTickOf({ database, log }: Jobs, definition: ScheduledJob, stored: Tick | undefined, now: Date): Promise<Date> {
  const { name, schedule } = definition;
  if (stored === undefined) {
    await database.transaction(async (tx) => {
      await limitLockWait(tx);
      await beginSchedule(tx, name, schedule.text, now);
    }, CONFLICT_RETRIES);
    return now;
  }
  if (stored.schedule === schedule.text) return stored.last_tick;
  let since = stored.last_tick;
  if (stored.schedule !== null) {
    // While a deploy is under way, processes of both versions change it back and forth: ticks since the first change are not lost by it.
    const seen = firstSeen.get(definition) ?? now;
    firstSeen.set(definition, seen);
    if (seen > since) since = seen;
    log.info({ job: name, from: stored.schedule, to: schedule.text }, 'the schedule of a recurring job has changed');
  }
  const from = stored;
  await database.transaction(async (tx) => {
    await limitLockWait(tx);
    await changeSchedule(tx, from, schedule.text, since);
  }, CONFLICT_RETRIES);
  return since;
}

/** The tick and its job are one transaction, and only one process can move the tick: exactly one job per tick. */
async function startDue(jobs: Jobs, definition: ScheduledJob, last: Date, now: Date): Promise<Date> {
  const decision = decideTick(definition.schedule, last, now);
  if (decision === null) return last;
  const { tick, starts } = decision;
  await jobs.database.transaction(async (tx) => {
    await limitLockWait(tx);
    const advanced = await advanceTick(tx, definition.name, last, tick);
    if (advanced === null || advanced.isPaused) return;
    if (!starts) {
      jobs.log.warn({ job: definition.name, tick }, 'skipped a missed run of a recurring job');
      return;
    }
    const { id } = await startJob(tx, definition, definition.schedule.input, { runAt: tick });
    await recordRun(tx, definition.name, id);
  }, CONFLICT_RETRIES);
  return tick;
}
