// SQL of the alerts: who checks them now, and which fire.
import type { Db } from '../../db/engine/db.ts';
import { ALERT_NAME_LENGTH_MAX } from '../models.ts';
import type { Alert } from '../state/health.ts';

export interface FiringAlert {
  readonly name: string;
  readonly severity: Alert['severity'];
  readonly value: string;
  readonly since: Date;
}

/** True for one process in each interval, whatever their number. */
export async function claimCheck(db: Db, now: Date, everyMs: number): Promise<boolean> {
  const rows = await db.query(
    `insert into admin_alert_checks (id, began_at) values (1, $1)
     on conflict (id) do update set began_at = excluded.began_at where admin_alert_checks.began_at <= $2 returning id`,
    [now, new Date(now.getTime() - everyMs)],
  );
  return rows.length === 1;
}

/** Locks the row of checks until the end of the transaction. False: another process has begun a newer check. */
export async function lockCheck(tx: Db, beganAt: Date): Promise<boolean> {
  const rows = await tx.query('update admin_alert_checks set began_at = began_at where id = 1 and began_at = $1 returning id', [beganAt]);
  return rows.length === 1;
}

export function firingAlerts(db: Db): Promise<FiringAlert[]> {
  return db.query<FiringAlert>('select name, severity, value, since from admin_alerts order by name');
}

export async function saveAlert(tx: Db, { name, severity, value, since }: FiringAlert): Promise<void> {
  await tx.query(
    `insert into admin_alerts (name, severity, value, since) values ($1, $2, $3, $4)
     on conflict (name) do update set severity = excluded.severity, value = excluded.value`,
    [name, severity, value.slice(0, ALERT_NAME_LENGTH_MAX), since],
  );
}

export async function deleteAlert(tx: Db, name: string): Promise<void> {
  await tx.query('delete from admin_alerts where name = $1', [name]);
}
