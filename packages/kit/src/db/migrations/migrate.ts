import { setTimeout as sleep } from 'node:timers/promises';
import type { Database, Db } from '../engine/db.ts';
import type { Engine, EngineTransactionOptions } from '../engine/engine.ts';
import { dbErrors } from '../errors.ts';
import type { Handle } from '../engine/handle.ts';
import { type DbLog, silentLog } from '../log.ts';
import { quoteName as q } from '../declare/names.ts';
import { findTable } from './found-schema.ts';
import { requireFinished } from './required-backfills.ts';
import { compareHistory, ensureHistory, readHistory, recordApplied } from './history.ts';
import { applyOnline, stepsOf } from './apply-online.ts';
import type { Operation } from './operation.ts';
import { MigrationRefused } from './migration-refused.ts';
import { type MigrationModule, type PlannedMigration, planMigrations } from './plan.ts';
import { postgresStatements } from './postgres-steps.ts';
import { applyOperation, type SchemaState } from './schema-state.ts';
import { limitTableLocks, TABLE_LOCK_MS, untilUnlocked } from './table-locks.ts';
import { checkForeignKeys, rebuildTable } from './sqlite-rebuild.ts';
import { dropsTable, rebuildStatements, sqliteSteps } from './sqlite-steps.ts';
import { type OptionRules, readOptions, requireArguments } from '../../options/read-options.ts';
import { flag, milliseconds, objectWith, aList, queryable } from '../../options/value-rule.ts';

export interface MigrateOptions {
  /** Where each applied migration is written. Default: nowhere. */
  readonly log?: DbLog & {
    /** Called for each migration that was applied. */
    info?(fields: object, message: string): void;
  };
  /** Says what would run and changes nothing. */
  readonly dryRun?: boolean;
  /** Copies an SQLite file before a table with rows is rebuilt. On by default. */
  readonly backup?: boolean;
  /**
   * For tables that were there before their first migration: a migration that only creates tables, all of which exist, is recorded as applied
   * and not run. `kit migrate --check` reports where such tables differ.
   */
  readonly adopt?: boolean;
  /** How long to wait for another process that migrates, and for tables that other transactions use. Default: 5 minutes. */
  readonly lockWaitMs?: number;
  /**
   * PostgreSQL: how long one try waits for the lock of a table, while every statement on it waits behind. Then the migration is rolled back and
   * tried again, until `lockWaitMs` is over. Default: 3 seconds.
   */
  readonly lockTimeoutMs?: number;
}

const rules: OptionRules<MigrateOptions> = {
  log: objectWith('a log with warn and error, such as pino()', 'warn', 'error'),
  dryRun: flag,
  backup: flag,
  adopt: flag,
  lockWaitMs: milliseconds(0),
  lockTimeoutMs: milliseconds(1),
};

export interface MigrationReport {
  /** `accounts/0001_initial`, in the order in which they ran (or would run). */
  readonly applied: readonly string[];
  /** Applied earlier, by a newer version or a module no longer installed. */
  readonly unknown: readonly string[];
  /** Copies made before tables were rebuilt. */
  readonly backups: readonly string[];
  /** The SQL of a dry run, by migration. */
  readonly statements: Readonly<Record<string, readonly string[]>>;
}

const LOCK_WAIT_MS = 300_000;
/** One number for every kit database: two processes that migrate the same one wait for each other. */
const LOCK_KEY = 7_319_001;
/** How often a process asks whether another one has finished migrating. */
const LOCK_POLL_MS = 100;

/**
 * Brings the database up to date. Each migration is one transaction, with its line in the history: it happens as a
 * whole or not at all. Two processes may call this at once; the second waits and finds nothing left to do.
 */
export async function migrate(
  database: Database,
  modules: readonly MigrationModule[],
  options: MigrateOptions = {},
): Promise<MigrationReport> {
  readOptions('migrate()', options, rules);
  requireArguments('migrate()', { database, modules }, { database: queryable, modules: aList });
  const plan = planMigrations(modules);
  const { pending, unknown } = compareHistory(plan, await readHistory(database));
  if (options.dryRun === true) {
    const statements = Object.fromEntries(pending.map((step) => [step.id, dryStatements(step, database.dialect)]));
    return { applied: pending.map((step) => step.id), unknown, backups: [], statements };
  }
  const report = { applied: [] as string[], unknown, backups: [] as string[], statements: {} };
  for (const step of pending) {
    try {
      const waitMsMax = options.lockWaitMs ?? LOCK_WAIT_MS;
      const apply = () => whenAlone(waitMsMax, () => applyStep(database, step, options, report));
      await untilUnlocked(database, step, apply, {
        waitMsMax,
        retried: (attempt) =>
          options.log?.warn(
            { migration: step.id, attempt },
            'a table is locked by another transaction; the migration was rolled back and is tried again',
          ),
      });
    } catch (error) {
      if (error instanceof MigrationRefused) throw error;
      throw new Error(`Migration ${step.id} failed and was rolled back: ${(error as Error).message}`, { cause: error });
    }
  }
  return report;
}

/** What is left to do: `accounts/0002_add_phone`. Changes nothing. */
export async function pendingMigrations(database: Database, modules: readonly MigrationModule[]): Promise<string[]> {
  requireArguments('pendingMigrations()', { database, modules }, { database: queryable, modules: aList });
  return compareHistory(planMigrations(modules), await readHistory(database)).pending.map((step) => step.id);
}

async function applyStep(
  database: Database,
  step: PlannedMigration,
  options: MigrateOptions,
  report: { applied: string[]; backups: string[] },
): Promise<void> {
  const rebuilds = database.dialect === 'sqlite' && statesOf(step).some(({ operation, before }) => dropsTable(operation, before));
  const settings: EngineTransactionOptions = { withoutForeignKeys: rebuilds, waitMsMax: options.lockWaitMs ?? LOCK_WAIT_MS };
  const handle = database as unknown as Handle;
  const { engine, log } = handle.context;
  await handle.runTransaction(async (tx) => {
    if (tx.dialect === 'postgres') await lockMigrations(tx);
    await ensureHistory(tx);
    // Asked again under the lock: another process may have been here while this one waited.
    const done = await tx.query('select checksum from kit_migrations where module = $1 and name = $2', [step.module, step.migration.name]);
    if (done.length > 0) return;
    await limitTableLocks(tx, options.lockTimeoutMs ?? TABLE_LOCK_MS);
    await requireFinished(tx, step);
    if (rebuilds && options.backup !== false) report.backups.push(...(await backUp(tx, engine, step)));
    const adopts = options.adopt === true && (await createsExisting(tx, step));
    if (!adopts && step.migration.online && tx.dialect === 'postgres') await applyOnline(database, tx, step, options.lockTimeoutMs);
    else if (!adopts) for (const { operation, before } of statesOf(step)) await applyTo(tx, operation, before);
    if (rebuilds) await checkForeignKeys(tx);
    await recordApplied(tx, step);
    tx.afterCommit(() => {
      report.applied.push(step.id);
      options.log?.info?.({ migration: step.id }, 'migration applied');
    });
  }, settings);
  engine.forgetStatements();
  if (report.backups.length > 0)
    (options.log ?? log ?? silentLog).warn({ backups: report.backups }, 'tables were rebuilt; a copy of the file from before is beside it');
}

/** Whether the migration only creates tables, and the database has all of them. */
async function createsExisting(tx: Db, { migration }: PlannedMigration): Promise<boolean> {
  for (const operation of migration.operations)
    if (operation.op !== 'create_table' || (await findTable(tx, operation.table)) === undefined) return false;
  return migration.operations.length > 0;
}

/** Thrown out of a transaction that found another process migrating. */
const OTHERS = new Error('another process is migrating this database');

/**
 * Runs `work`, a transaction, as soon as no other process migrates. It asks in a new transaction each time: a concurrent index of the process that
 * migrates waits for the transactions of all others, so one that waited for it would wait forever.
 */
async function whenAlone<R>(waitMs: number, work: () => Promise<R>): Promise<R> {
  for (const startedAt = performance.now(); ;) {
    try {
      return await work();
    } catch (error) {
      if (error !== OTHERS) throw error;
      if (performance.now() - startedAt >= waitMs)
        throw dbErrors.database_busy({
          cause: error,
          message: `another process has been migrating this database for more than ${waitMs} ms`,
        });
      await sleep(LOCK_POLL_MS);
    }
  }
}

/** On SQLite the transaction itself is the lock. */
async function lockMigrations(tx: Db): Promise<void> {
  // An upper limit of the role is meant for requests.
  await tx.query('set local statement_timeout = 0');
  const [lock] = await tx.query<{ locked: boolean }>('select pg_try_advisory_xact_lock($1) as locked', [LOCK_KEY]);
  if (lock?.locked !== true) throw OTHERS;
}

async function applyTo(tx: Db, operation: Operation, before: SchemaState): Promise<void> {
  if (operation.op === 'code') {
    await operation.run(tx);
    return;
  }
  if (tx.dialect === 'postgres') {
    for (const statement of postgresStatements(operation, before)) await tx.query(statement);
    return;
  }
  const { statements, rebuild } = sqliteSteps(operation, before);
  for (const statement of statements) await tx.query(statement);
  if (rebuild !== undefined) await rebuildTable(tx, rebuild);
}

/** The operations of a migration, each with the tables it finds. */
function statesOf({ migration, before }: PlannedMigration): { operation: Operation; before: SchemaState }[] {
  let state = before;
  return migration.operations.map((operation) => {
    const found = { operation, before: state };
    state = applyOperation(state, operation);
    return found;
  });
}

/** Only tables with rows are worth a copy; a new installation has none. */
async function backUp(tx: Db, engine: Engine, step: PlannedMigration): Promise<string[]> {
  const tables = new Set(
    step.migration.operations.flatMap((operation) => ('table' in operation && step.before.has(operation.table) ? [operation.table] : [])),
  );
  for (const table of tables) {
    const found = await tx.query(`select 1 as found from ${q(table)} limit 1`);
    if (found.length === 0) continue;
    const time = tx.clock
      .now()
      .toISOString()
      .replaceAll(/[-:]|\.\d+/g, '');
    const path = await engine.backUp((file) => `${file}.before-${step.module}-${step.migration.name}-${time}`);
    return path === undefined ? [] : [path];
  }
  return [];
}

function dryStatements(step: PlannedMigration, dialect: Db['dialect']): string[] {
  return statesOf(step).flatMap(({ operation, before }) => {
    if (operation.op === 'code') return [`-- code: ${operation.label}`];
    if (step.migration.online && dialect === 'postgres') return stepsOf(operation, before).map(({ sql }) => sql);
    if (dialect === 'postgres') return postgresStatements(operation, before);
    const { statements, rebuild } = sqliteSteps(operation, before);
    if (rebuild === undefined) return statements;
    const { create, fill, drop, rename, indexes, fullText } = rebuildStatements(rebuild);
    return statements.concat(create, fill, drop, rename, indexes, fullText);
  });
}
