// SQL of recurring jobs.
import type { Db } from '../../../db/db.ts';

export interface Tick {
  readonly name: string;
  readonly last_tick: Date;
}

export function readTicks(db: Db): Promise<Tick[]> {
  return db.query<Tick>('select name, last_tick from job_schedules');
}

export async function beginSchedule(db: Db, name: string, at: Date): Promise<void> {
  await db.query('insert into job_schedules (name, last_tick) values ($1, $2) on conflict (name) do nothing', [name, at]);
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
