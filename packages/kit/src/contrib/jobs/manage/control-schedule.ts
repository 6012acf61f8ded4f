import type { Db } from '../../../db/engine/db.ts';
import { jobErrors } from '../errors.ts';
import { type Jobs, jobsOf } from '../rows/jobs.ts';
import { type ScheduledJob, scheduledJobs } from '../running/run-schedules.ts';
import { beginSchedule, pauseTicks, recordRun, resumeTicks } from '../running/schedule-store.ts';
import { startJob } from '../start/start-job.ts';

/** Its ticks start no jobs until it is resumed, in every process and after restarts. A paused schedule stays as it is. */
export async function pauseSchedule(tx: Db, name: string): Promise<boolean> {
  const { jobs, definition } = await recorded(tx, name);
  return pauseTicks(tx, definition.name, jobs.clock.now());
}

/** The next tick starts a job again; ticks of the pause do not, whatever `missed` says. */
export async function resumeSchedule(tx: Db, name: string): Promise<boolean> {
  const { jobs, definition } = await recorded(tx, name);
  return resumeTicks(tx, definition.name, jobs.clock.now());
}

/** Starts its job now, with the input of the schedule. The next tick stays where it is. */
export async function runScheduleNow(tx: Db, name: string): Promise<string> {
  const { definition } = await recorded(tx, name);
  const { id } = await startJob(tx, definition, definition.schedule.input);
  await recordRun(tx, definition.name, id);
  return id;
}

/** The declared schedule, with a row: a database that was migrated while the application ran has none yet. */
async function recorded(tx: Db, name: string): Promise<{ readonly jobs: Jobs; readonly definition: ScheduledJob }> {
  const jobs = jobsOf(tx);
  const definition = scheduledJobs(jobs).find((each) => each.name === name);
  if (definition === undefined) throw jobErrors.schedule_not_found();
  await beginSchedule(tx, name, definition.schedule.text, jobs.clock.now());
  return { jobs, definition };
}
