// SQL of recurring jobs.
import type { Db } from '../../../db/db.ts';

export interface Tick {
  readonly name: string;
  readonly last_tick: Date;
  /** The schedule that the tick belongs to; null in rows of earlier versions. */
  readonly schedule: string | null;
}

export function readTicks(db: Db): Promise<Tick[]> {
  return db.query<Tick>('select name, last_tick, schedule from job_schedules');
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

/** False: another process has dealt with it. */
export async function advanceTick(tx: Db, name: string, from: Date, to: Date): Promise<boolean> {
  const rows = await tx.query('update job_schedules set last_tick = $3 where name = $1 and last_tick = $2 returning name', [
    name,
    from,
    to,
  ]);
  return rows.length === 1;
}
