import type { AdminContext, AdminWaiting } from '../../app/admin/declaration.ts';
import type { AdminTone } from '../../app/admin/shapes.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { Db } from '../../db/engine/db.ts';
import { runHealthChecks, type HealthCheck, type HealthReport } from '../../middleware/health.ts';
import type { AdminSite } from './admin-site.ts';
import { keptAnswer } from './kept-answer.ts';
import type { AdminSiteState, AdminStatePart } from '../wire/wire.ts';

/** A database that takes longer for nothing is in trouble. Shorter than what the page waits for the answer. */
const DEADLINE_MS = 2_000;
/** Workers look for due work every second or so. */
const LATE_MS = 60_000;

const TONES: Readonly<Record<HealthReport['checks'][string]['status'], AdminTone>> = {
  ok: 'good',
  warning: 'warning',
  failed: 'bad',
  timeout: 'bad',
};

/** The state of what the site needs: databases and whatever else the application checks, and whether workers keep up. */
export const stateOf = keptAnswer((site: AdminSite, context: AdminContext, _key: 'state') => readState(site, context));

async function readState(site: AdminSite, context: AdminContext): Promise<AdminSiteState> {
  const { app } = site;
  const waiting: AdminWaiting[] = [];
  const checks: Record<string, HealthCheck> = { ...app.healthChecks };
  for (const [alias, db] of Object.entries(app.databases)) if (db.dialect === 'sqlite') checks[writesOf(alias)] = () => takeWriter(db);
  for (const [index, declaration] of site.declarations.entries())
    if (declaration.waiting !== undefined)
      checks[`workers ${index}`] = async () => {
        const read = await declaration.waiting?.(context);
        if (read !== undefined) waiting.push(read);
      };
  const report = await runHealthChecks(checks, { databases: app.databases }, DEADLINE_MS, (name, error) =>
    context.log.warn({ err: error, check: name }, 'admin: a check of the state failed'),
  );
  const parts = Object.entries(report.checks).filter(([name]) => !name.startsWith('workers '));
  const now = context.clock.now();
  return {
    at: now.toISOString(),
    process: { started_at: (site.startedAt ?? now).toISOString(), version: app.version },
    parts: [
      ...parts.map(([name, check]) => checkPart(name, check)),
      site.responseTimes.part,
      ...waiting.map((each) => workerPart(each, now)),
    ],
  };
}

const writesOf = (alias: string): string => (alias === 'default' ? 'database writes' : `database_${alias} writes`);

/** Only one connection of a SQLite file writes at a time, of whichever process. */
async function takeWriter(db: Db): Promise<void> {
  await db.transaction(async () => {}, CONFLICT_RETRIES);
}

function checkPart(name: string, { status, detail }: HealthReport['checks'][string]): AdminStatePart {
  const label = name.charAt(0).toUpperCase() + name.slice(1).replaceAll('_', ' ');
  const isWriter = name.endsWith(' writes');
  const text =
    detail ??
    (status === 'ok'
      ? 'Works.'
      : isWriter
        ? 'The database is locked by another transaction: changes wait.'
        : status === 'timeout'
          ? `No answer within ${DEADLINE_MS / 1000} s.`
          : 'Failed; the log has the reason.');
  return { name: label, tone: isWriter && status !== 'ok' ? 'warning' : TONES[status], text };
}

function workerPart({ label, oldest, remedy }: AdminWaiting, now: Date): AdminStatePart {
  const name = `${label} workers`;
  const ageMs = oldest === null ? 0 : now.getTime() - oldest.getTime();
  if (ageMs < LATE_MS) return { name, tone: 'good', text: 'Due work is taken.' };
  return { name, tone: 'warning', text: `The oldest is due since ${(oldest as Date).toISOString()}. ${remedy}` };
}
