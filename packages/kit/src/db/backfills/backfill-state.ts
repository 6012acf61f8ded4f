import type { Db } from '../engine/db.ts';

/**
 * How far a back-fill is, in the database of its rows; no row: it was never started.
 *
 * running   it was started; a runner goes on with it, or died and the next one does
 * paused    its runners wait until it is resumed
 * failed    `run` threw: its runner ended, and the next one tries the same batch again
 * finished  every row was done
 */
export type StoredState = 'running' | 'paused' | 'failed' | 'finished';

export interface BackfillState {
  readonly state: StoredState;
  /** The key of the last row that is done, as JSON; null at the beginning. */
  readonly position: string | null;
  readonly rowsDone: number;
  /** Counted or estimated when it was started. */
  readonly rowsTotal: number;
  /** Of the last batches. */
  readonly rowsPerSecond: number;
  /** Why its runner stands still. */
  readonly waitsFor: string | null;
  readonly startedAt: Date;
  /** When a runner last wrote. */
  readonly updatedAt: Date;
  readonly finishedAt: Date | null;
}

/** A back-fill of a module. */
export interface BackfillKey {
  readonly module: string;
  readonly name: string;
}

const COLUMNS = (time: string, number: string): string => `module text not null, name text not null, state text not null, position text,
  rows_done bigint not null, rows_total bigint not null, rows_per_second ${number} not null, waits_for text,
  started_at ${time} not null, updated_at ${time} not null, finished_at ${time}, primary key (module, name)`;

const TABLE = {
  sqlite: `create table if not exists kit_backfills (${COLUMNS('timestamp_text', 'real')})`,
  postgres: `create table if not exists kit_backfills (${COLUMNS('timestamp(3) with time zone', 'double precision')})`,
};

export async function ensureBackfills(db: Db): Promise<void> {
  if (await hasBackfills(db)) return;
  try {
    await db.transaction((tx) => tx.query(TABLE[db.dialect]));
  } catch (error) {
    // Of two that create it at once, PostgreSQL fails one, whatever `if not exists` says.
    if (!(await hasBackfills(db))) throw error;
  }
}

export async function hasBackfills(db: Db): Promise<boolean> {
  const [found] = await db.query<{ found: unknown }>(
    db.dialect === 'sqlite'
      ? `select count(*) as found from sqlite_master where type = 'table' and name = 'kit_backfills'`
      : `select to_regclass('kit_backfills') is not null as found`,
  );
  return Boolean(found?.found);
}

interface StoredRow extends BackfillKey {
  readonly state: StoredState;
  readonly position: string | null;
  readonly rows_done: bigint;
  readonly rows_total: bigint;
  readonly rows_per_second: number;
  readonly waits_for: string | null;
  readonly started_at: Date;
  readonly updated_at: Date;
  readonly finished_at: Date | null;
}

const SELECT = `select module, name, state, position, rows_done, rows_total, rows_per_second, waits_for, started_at, updated_at, finished_at from kit_backfills`;

function stateOf(row: StoredRow): BackfillState {
  return {
    state: row.state,
    position: row.position,
    rowsDone: Number(row.rows_done),
    rowsTotal: Number(row.rows_total),
    rowsPerSecond: row.rows_per_second,
    waitsFor: row.waits_for,
    startedAt: row.started_at,
    updatedAt: row.updated_at,
    finishedAt: row.finished_at,
  };
}

/** Of every back-fill that was started, by `module/name`. */
export async function readStates(db: Db): Promise<ReadonlyMap<string, BackfillState>> {
  if (!(await hasBackfills(db))) return new Map();
  return new Map((await db.query<StoredRow>(SELECT)).map((row) => [`${row.module}/${row.name}`, stateOf(row)]));
}

/**
 * The state, locked until the transaction ends: two runners never have the same batch. Null when another runner has it. A transaction on SQLite has
 * locked everything already.
 */
export async function lockState(tx: Db, { module, name }: BackfillKey): Promise<BackfillState | null> {
  const lock = tx.dialect === 'postgres' ? ' for update skip locked' : '';
  const [row] = await tx.query<StoredRow>(`${SELECT} where module = $1 and name = $2${lock}`, [module, name]);
  return row === undefined ? null : stateOf(row);
}

/** Begins it, or begins it again; nothing happens when it is under way or paused. */
export async function beginState(tx: Db, { module, name }: BackfillKey, rowsTotal: number): Promise<void> {
  await tx.query(
    `insert into kit_backfills (module, name, state, position, rows_done, rows_total, rows_per_second, waits_for, started_at, updated_at, finished_at)
     values ($1, $2, 'running', null, 0, $3, 0, null, $4, $4, null)
     on conflict (module, name) do update set state = 'running', position = null, rows_done = 0, rows_total = excluded.rows_total,
       rows_per_second = 0, waits_for = null, started_at = excluded.started_at, updated_at = excluded.updated_at, finished_at = null
       where kit_backfills.state = 'finished'`,
    [module, name, rowsTotal, tx.clock.now()],
  );
}

/** For a table without such rows: a migration that requires it may run. */
export async function recordNothingToDo(tx: Db, { module, name }: BackfillKey): Promise<void> {
  await tx.query(
    `insert into kit_backfills (module, name, state, position, rows_done, rows_total, rows_per_second, waits_for, started_at, updated_at, finished_at)
     values ($1, $2, 'finished', null, 0, 0, 0, null, $3, $3, $3)
     on conflict (module, name) do update set state = 'finished', waits_for = null, updated_at = excluded.updated_at, finished_at = excluded.finished_at`,
    [module, name, tx.clock.now()],
  );
}

export interface BatchDone {
  /** Null: there are no more rows. */
  readonly position: string | null;
  readonly rows: number;
  readonly rowsPerSecond: number;
}

/** In the transaction of the batch. */
export async function recordBatch(tx: Db, { module, name }: BackfillKey, { position, rows, rowsPerSecond }: BatchDone): Promise<void> {
  const now = tx.clock.now();
  await tx.query(
    `update kit_backfills set state = $3, position = coalesce($4, position), rows_done = rows_done + $5, rows_per_second = $6, waits_for = null,
       updated_at = $7, finished_at = $8 where module = $1 and name = $2`,
    [module, name, position === null ? 'finished' : 'running', position, rows, rowsPerSecond, now, position === null ? now : null],
  );
}

/** False when it is not in one of these states. */
export async function changeState(db: Db, { module, name }: BackfillKey, from: readonly StoredState[], to: StoredState): Promise<boolean> {
  const { count } = await db.execute(
    `update kit_backfills set state = $3, waits_for = null, updated_at = $4 where module = $1 and name = $2 and state in (${from.map((each) => `'${each}'`).join(', ')})`,
    [module, name, to, db.clock.now()],
  );
  return count === 1;
}

export async function recordWait(db: Db, { module, name }: BackfillKey, waitsFor: string | null): Promise<void> {
  await db.query('update kit_backfills set waits_for = $3, updated_at = $4 where module = $1 and name = $2', [
    module,
    name,
    waitsFor,
    db.clock.now(),
  ]);
}
