// SQL of recurring jobs.
import type { Db } from '../../../db/engine/db.ts';

export interface Tick {
  readonly name: string;
  readonly last_tick: Date;
  /** The schedule that the tick belongs to; null in rows of earlier versions. */
  readonly schedule: string | null;
  readonly paused_at: Date | null;
  readonly last_job_id: string | null;
}

export function readTicks(db: Db): Promise<Tick[]> {
  return db.query<Tick>('select name, last_tick, schedule, paused_at, last_job_id from job_schedules');
}

export async function beginSchedule(db: Db, name: string, schedule: string, at: Date): Promise<void> {
  await db.query('insert into job_schedules (name, last_tick, schedule) values ($1, $2, $3) on conflict (name) do nothing', [
    name,
    at,
    schedule,
  ]);
}

/** Nothing is changed when another process has moved the tick meanwhile. */
export async function changeSchedule(db: Db, { name, last_tick: from }: Tick, schedule: string, to: Date): Promise<void> {
  await db.query('update job_schedules set schedule = $3, last_tick = $4 where name = $1 and last_tick = $2', [name, from, schedule, to]);
}

/** Null: another process has dealt with it. A pause that commits first is seen here, because both update the row. */
export async function advanceTick(tx: Db, name: string, from: Date, to: Date): Promise<{ readonly isPaused: boolean } | null> {
  const [row] = await tx.query<{ paused_at: unknown }>(
    'update job_schedules set last_tick = $3 where name = $1 and last_tick = $2 returning paused_at',
    [name, from, to],
  );
  return row === undefined ? null : { isPaused: row.paused_at !== null };
}

export async function recordRun(tx: Db, name: string, jobId: string): Promise<void> {
  await tx.query('update job_schedules set last_job_id = $2 where name = $1', [name, jobId]);
}

/** False: it was paused already. */
export async function pauseTicks(tx: Db, name: string, at: Date): Promise<boolean> {
  const rows = await tx.query('update job_schedules set paused_at = $2 where name = $1 and paused_at is null returning name', [name, at]);
  return rows.length === 1;
}

/** Ticks of the pause are dealt with: they are not missed ones. False: it was not paused. */
export async function resumeTicks(tx: Db, name: string, at: Date): Promise<boolean> {
  const rows = await tx.query(
    `update job_schedules set paused_at = null, last_tick = case when last_tick < $2 then $2 else last_tick end
     where name = $1 and paused_at is not null returning name`,
    [name, at],
  );
  return rows.length === 1;
}
