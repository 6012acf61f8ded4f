import type { AdminContext } from '../../app/admin/declaration.ts';
import type { EventEntry } from '../../app/declare/registry.ts';
import type { Principal } from '../../auth/people/principal.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { AdminSite } from '../state/admin-site.ts';
import { alertsOf } from '../state/health.ts';
import type { AdminSettings } from '../options.ts';
import { countOverview } from '../state/overview.ts';
import { alertChanges, type AlertChanges } from './alert-changes.ts';
import { claimCheck, deleteAlert, firingAlerts, lockCheck, saveAlert } from './alert-store.ts';

type AlertSettings = NonNullable<AdminSettings['alerts']>;

/** Alerts are about now: a job that failed yesterday is history. */
const RANGE = '1h';

/**
 * Counts the overview and sends what is new since the last check: an alert that fires or becomes worse, and one that is over. One process of all
 * does it in each interval. The firing alerts, the events and the log lines are one transaction, so each is sent once; a check that
 * was overtaken by a newer one changes nothing.
 */
export async function checkAlerts(site: AdminSite, { everyMs, audience }: AlertSettings): Promise<AlertChanges | null> {
  const { app } = site;
  const { clock, db, log, registry } = app;
  const beganAt = clock.now();
  if (!(await claimCheck(db, beganAt, everyMs))) return null;
  const { parts } = await countOverview(site, watching(site), RANGE);
  const alerts = alertsOf(parts);
  return db.transaction(async (tx) => {
    if (!(await lockCheck(tx, beganAt))) return null;
    const changes = alertChanges(await firingAlerts(tx), alerts, beganAt);
    for (const alert of [...changes.fired, ...changes.kept]) await saveAlert(tx, alert);
    for (const { name } of changes.resolved) await deleteAlert(tx, name);
    if (audience !== undefined) await registry.events?.publish(tx, eventsOf(changes, audience, beganAt));
    tx.afterCommit(() => {
      for (const { name, severity, value, hint } of changes.fired)
        log.warn({ alert: name, severity, value, hint }, 'admin: an alert fired');
      for (const { name, since } of changes.resolved) log.info({ alert: name, since }, 'admin: an alert is over');
    });
    return changes;
  }, CONFLICT_RETRIES);
}

function eventsOf({ fired, resolved }: AlertChanges, audience: NonNullable<AlertSettings['audience']>, now: Date): EventEntry[] {
  // Of one alert in order: a receiver must not see the end before the beginning.
  const entry = (type: string, name: string, data: object): EventEntry => ({
    type,
    data: { alert: name, ...data },
    ...audience,
    orderingKey: `alert:${name}`,
  });
  return [
    ...fired.map(({ name, severity, value, hint, since }) =>
      entry('alert.fired', name, { severity, value, hint, since: since.toISOString() }),
    ),
    ...resolved.map(({ name, severity, since }) =>
      entry('alert.resolved', name, { severity, since: since.toISOString(), resolved_at: now.toISOString() }),
    ),
  ];
}

/** Nobody looks: what the parts of the overview count does not depend on who does. */
const WATCHER: Principal = Object.freeze({
  user: Object.freeze({ id: '', username: 'admin alerts', email: null, is_active: true, is_staff: true, is_superuser: false }),
  scheme: 'program',
  scopes: null,
});

function watching(site: AdminSite): AdminContext {
  const { db, databases, clock, log } = site.app;
  return site.contextOf({ db, databases, clock, log, requestId: '', tenant: () => Promise.resolve(null) }, WATCHER);
}
