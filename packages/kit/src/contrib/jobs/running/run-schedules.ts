import type { JobDefinition } from '../job.ts';
import type { Jobs } from '../jobs.ts';
import type { Schedule } from '../schedule.ts';
import { decideTick } from '../schedule.ts';
import { startJob } from '../start-job.ts';
import { advanceTick, beginSchedule, readTicks } from './schedule-store.ts';

export type ScheduledJob = JobDefinition & { readonly schedule: Schedule };

export function scheduledJobs({ settings }: Jobs): readonly ScheduledJob[] {
  return settings.catalog.definitions.filter((definition): definition is ScheduledJob => definition.schedule !== null);
}

/** Starts the recurring jobs that are due. Returns when the next one is; null when there is none. */
export async function runSchedules(jobs: Jobs): Promise<Date | null> {
  const scheduled = scheduledJobs(jobs);
  if (scheduled.length === 0) return null;
  const { database, clock } = jobs;
  const ticks = new Map((await readTicks(database)).map(({ name, last_tick: at }) => [name, at]));
  const next: number[] = [];
  for (const definition of scheduled) {
    const now = clock.now();
    let last = ticks.get(definition.name);
    if (last === undefined) {
      // Ticks from before the schedule existed are not missed ones.
      await beginSchedule(database, definition.name, now);
      last = now;
    }
    const tick = await startDue(jobs, definition, last, now);
    const following = definition.schedule.nextTick(tick);
    if (following !== null) next.push(following.getTime());
  }
  return next.length === 0 ? null : new Date(Math.min(...next));
}

/** The tick and its job are one transaction, and only one process can move the tick: exactly one job per tick. */
async function startDue(jobs: Jobs, definition: ScheduledJob, last: Date, now: Date): Promise<Date> {
  const decision = decideTick(definition.schedule, last, now);
  if (decision === null) return last;
  const { tick, starts } = decision;
  await jobs.database.transaction(async (tx) => {
    if (!(await advanceTick(tx, definition.name, last, tick))) return;
    if (starts) await startJob(tx, definition, definition.schedule.input, { runAt: tick });
    else jobs.log.warn({ job: definition.name, tick }, 'a tick of a recurring job was missed and is passed over');
  });
  return tick;
}
