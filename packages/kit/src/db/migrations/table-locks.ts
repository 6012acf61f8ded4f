import { setTimeout as sleep } from 'node:timers/promises';
import type { Database, Db } from '../engine/db.ts';
import { MigrationRefused } from './migration-refused.ts';
import type { PlannedMigration } from './plan.ts';

/**
 * How long one try waits for the lock of a table. Every later statement on the table waits behind a migration that waits, reads, too: a long wait
 * behind one report would stop the app.
 */
export const TABLE_LOCK_MS = 3000;
/** After a try that did not get its locks, the app works through what has waited. */
const PAUSE_MS = 1000;
const PAUSE_MS_MAX = 15_000;

/** PostgreSQL's lock_not_available and deadlock_detected. */
const LOCKED = new Set<unknown>(['55P03', '40P01']);

/** Another process that migrates is none: it was waited for already. */
function isLocked(error: unknown): boolean {
  for (let each = error; each !== undefined && each !== null; each = (each as { cause?: unknown }).cause) {
    const { code } = each as { code?: unknown };
    if (code === 'database_busy') return false;
    if (LOCKED.has(code)) return true;
  }
  return false;
}

export interface LockPatience {
  /** For all tries together. */
  readonly waitMsMax: number;
  readonly retried: (attempt: number) => void;
}

/** Runs `work`, a transaction that is limited to {@link TABLE_LOCK_MS}, until it gets the locks of its tables. */
export async function untilUnlocked<R>(
  database: Database,
  step: LockingStep,
  work: () => Promise<R>,
  { waitMsMax, retried }: LockPatience,
): Promise<R> {
  const startedAt = performance.now();
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!isLocked(error)) throw error;
      const holders = await holdersOf(database, step).catch(() => []);
      const pauseMs = Math.min(PAUSE_MS_MAX, PAUSE_MS * attempt);
      if (performance.now() - startedAt + pauseMs > waitMsMax) {
        const seconds = Math.round(waitMsMax / 1000);
        throw new MigrationRefused(
          `Migration ${step.id} did not get the locks of its tables within ${seconds} s (${attempt} ${attempt === 1 ? 'try' : 'tries'}), and nothing of it was applied.${holders.length === 0 ? '' : ` ${holders.join(' ')}`} End the long transactions, or run it again at a quiet time.`,
          error,
        );
      }
      retried(attempt);
      await sleep(pauseMs);
    }
  }
}

interface Holder {
  readonly table_name: string;
  readonly pid: number;
  readonly state: string | null;
  readonly application: string;
  readonly seconds: number;
}

/** Transactions of others that have locks on the tables of a migration, the oldest first: sentences. */
async function holdersOf(database: Database, { migration, before }: LockingStep): Promise<string[]> {
  const tables = [...new Set(migration.operations.flatMap((each) => ('table' in each && before.has(each.table) ? [each.table] : [])))];
  if (tables.length === 0) return [];
  const rows = await database.query<Holder>(
    `select distinct c.relname as table_name, a.pid, a.state, a.application_name as application,
       extract(epoch from clock_timestamp() - a.xact_start)::float8 as seconds
     from pg_locks l join pg_class c on c.oid = l.relation join pg_stat_activity a on a.pid = l.pid
     where l.granted and a.xact_start is not null and a.pid <> pg_backend_pid() and c.relname = any($1)
       and c.relnamespace = current_schema()::regnamespace
     order by seconds desc limit 3`,
    [tables],
  );
  return rows.map(
    ({ table_name: table, pid, state, application, seconds }) =>
      `"${table}" is in use by process ${pid} (${state ?? 'unknown'} for ${Math.round(seconds)} s${application === '' ? '' : `, application "${application}"`}).`,
  );
}

/** What locks tables: a migration, or the triggers of the change log. */
export type LockingStep = Pick<PlannedMigration, 'id' | 'before'> & {
  readonly migration: Pick<PlannedMigration['migration'], 'operations'>;
};

/** For the rest of the transaction. */
export async function limitTableLocks(tx: Db, lockMs: number): Promise<void> {
  if (tx.dialect === 'postgres') await tx.query(`set local lock_timeout = ${Math.max(1, Math.round(lockMs))}`);
}
