import type { Model } from '../declare/model.ts';
import { tellingColumns } from '../declare/personal-column.ts';
import { quoteName as q } from '../declare/names.ts';
import type { Row } from '../declare/rows.ts';
import { RETENTION_AGE, type RetentionOptions } from '../declare/table-from-columns.ts';
import type { Database, Db } from '../engine/db.ts';
import { find, list, update } from '../rows/repository.ts';
import { statementsOf } from '../sql/model-statements.ts';
import { type ErasureListeners, eraseRows, lockRows } from './erase-rows.ts';
import { listLegalHolds } from './erasure-state.ts';
import { retentionRuns } from './models.ts';
import { exceptHeldSql, type HeldTables } from './held-rows.ts';
import type { Subject } from './subject.ts';

/** A table with a retention, and whose its rows are. */
export interface RetainedTable {
  readonly database: Database;
  readonly model: Model;
  readonly retention: RetentionOptions;
  /** A legal hold keeps rows, and those that they would go with. */
  readonly tables: HeldTables;
}

export type RetentionState = Row<typeof retentionRuns>;

export interface RetentionRun extends ErasureListeners {
  /** Where the figures and the legal holds are: the default database. */
  readonly database: Database;
  /** Rows of one transaction. Default: 500. */
  readonly batch?: number;
  /** Also a table that was looked at a short time ago. */
  readonly now?: boolean;
}

const BATCH = 500;
/** A table without rows that are due is looked at again after this time. */
const AGAIN_MS = 3_600_000;
const ERROR_LENGTH_MAX = 500;

/** What retention did to each table, by its name. */
export async function retentionStates(db: Db): Promise<ReadonlyMap<string, RetentionState>> {
  return new Map((await list(db, retentionRuns)).map((row) => [row.table_name, row]));
}

/** Rows with an earlier time have had theirs. */
export function cutoffOf({ after }: Pick<RetentionOptions, 'after'>, now: Date): Date {
  const [, count = '0', unit] = RETENTION_AGE.exec(after) ?? [];
  const cutoff = new Date(now);
  if (unit === 'day') cutoff.setUTCDate(cutoff.getUTCDate() - Number(count));
  else {
    const day = cutoff.getUTCDate();
    cutoff.setUTCDate(1);
    cutoff.setUTCMonth(cutoff.getUTCMonth() - Number(count) * (unit === 'year' ? 12 : 1));
    // 31 March less a month is the last day of February.
    const last = new Date(Date.UTC(cutoff.getUTCFullYear(), cutoff.getUTCMonth() + 1, 0)).getUTCDate();
    cutoff.setUTCDate(Math.min(day, last));
  }
  return cutoff;
}

/**
 * One batch of the rows of a table whose time is over, and its figures, in one transaction: a process that is killed has done a batch or not, and two processes never do
 * the same one. Returns how many; null where another process is at the table, or it was looked at a short time ago.
 */
export async function retainBatch(table: RetainedTable, run: RetentionRun): Promise<number | null> {
  const { name } = table.model;
  const { database } = run;
  await database.query(
    'insert into kit_retention (table_name, next_at, last_rows, total_rows) values ($1, $2, 0, 0) on conflict (table_name) do nothing',
    [name, database.clock.now()],
  );
  try {
    return await database.transaction((tx) => retain(tx, table, run));
  } catch (error) {
    const now = database.clock.now();
    const last_error = (error as Error).message.slice(0, ERROR_LENGTH_MAX);
    await update(database, retentionRuns, name, { last_error, last_run_at: now, next_at: new Date(now.getTime() + AGAIN_MS) });
    throw error;
  }
}

async function retain(tx: Db, table: RetainedTable, run: RetentionRun): Promise<number | null> {
  const { name } = table.model;
  const lock = tx.dialect === 'postgres' ? ' for update skip locked' : '';
  const free = await tx.query(`select table_name from kit_retention where table_name = $1${lock}`, [name]);
  const state = free.length === 0 ? undefined : await find(tx, retentionRuns, name);
  const now = tx.clock.now();
  if (state === undefined || (run.now !== true && state.next_at > now)) return null;
  const rows = await eraseOverdue(tx, table, run);
  // A run is the batches without a pause between them.
  const isFirst = state.last_run_at === null || state.next_at > state.last_run_at;
  await update(tx, retentionRuns, name, {
    next_at: rows < (run.batch ?? BATCH) ? new Date(now.getTime() + AGAIN_MS) : now,
    last_run_at: now,
    ...(rows === 0 ? {} : { last_rows: (isFirst ? 0n : state.last_rows) + BigInt(rows), total_rows: state.total_rows + BigInt(rows) }),
    last_error: null,
  });
  return rows;
}

async function eraseOverdue(
  tx: Db,
  table: RetainedTable,
  { beforeErase, afterErase, batch = BATCH, database }: RetentionRun,
): Promise<number> {
  const holds = await holdsOn(tx);
  const { model, retention } = table;
  const erase = async (own: Db): Promise<number> => {
    const where = (values: unknown[]) => overdueSql(table, own.clock.now(), holds, values);
    const rows = await lockRows(own, { model, where, after: null, limit: batch });
    const columns = retention.then === 'anonymise' ? namingColumns(model) : [];
    const hasChangeLog = table.database === database;
    await eraseRows(own, model, rows, { erasing: retention.then, columns, beforeErase, afterErase, hasChangeLog });
    return rows.length;
  };
  return table.database === database ? erase(tx) : table.database.transaction(erase);
}

/** How many rows the next runs would delete or anonymise. */
export async function countOverdue(table: RetainedTable, database: Database): Promise<number> {
  const values: unknown[] = [];
  const condition = overdueSql(table, table.database.clock.now(), await holdsOn(database), values);
  const text = `select count(*) as rows from ${statementsOf(table.model).table} r where ${condition}`;
  const [found] = await table.database.query<{ rows: number | bigint }>(text, values);
  return Number(found?.rows ?? 0);
}

async function holdsOn(db: Db): Promise<Subject[]> {
  return (await listLegalHolds(db)).map(({ kind, subject_id: id }) => ({ kind, id }));
}

function overdueSql({ model, retention, tables }: RetainedTable, now: Date, holds: readonly Subject[], values: unknown[]): string {
  const by = statementsOf(model).column(retention.by);
  const cutoff = cutoffOf(retention, now);
  const limit = by.definition.kind === 'date' ? cutoff.toISOString().slice(0, 10) : cutoff;
  const terms = [`r.${q(by.name)} < $${values.push(by.encode(limit))}`];
  if (retention.then === 'anonymise')
    terms.push(
      `(${tellingColumns(model)
        .map((name) => stillThere(model, name, values))
        .join(' or ')})`,
    );
  return terms.join(' and ') + exceptHeldSql(holds, tables, model, 'r', values);
}

/** Columns that name the person and are replaced with the personal ones. */
function namingColumns({ columns }: Model): string[] {
  return Object.entries(columns).flatMap(([name, { settings }]) => (settings.person?.erase === 'anonymise' ? [name] : []));
}

function stillThere(model: Model, name: string, values: unknown[]): string {
  const { settings, encode } = statementsOf(model).column(name);
  const replace = (settings.personal ?? settings.person)?.replace;
  return replace === undefined ? `r.${q(name)} is not null` : `r.${q(name)} <> $${values.push(encode(replace('')))}`;
}
