import type { Db } from '../engine/db.ts';
import { json } from '../values/json-parameter.ts';
import type { ForeignKey } from './foreign-keys.ts';

/**
 * How far a copy is, stored in the target and removed when it is complete.
 *
 * preparing  the migrations run
 * checking   the tables are there and empty, their foreign keys are dropped
 * copying    every value of the source fits; rows are copied
 * closing    all rows are there; foreign keys are added and both sides compared
 */
export type CopyPhase = 'preparing' | 'checking' | 'copying' | 'closing';

export interface CopyState {
  readonly source: string;
  readonly phase: CopyPhase;
  readonly foreign_keys: readonly ForeignKey[];
}

/** Null where no copy into this database was begun, or one is complete. */
export async function readCopyState(db: Db): Promise<CopyState | null> {
  const [found] = await db.query<{ found: boolean }>(`select to_regclass('kit_copy') is not null as found`);
  if (found?.found !== true) return null;
  const [state] = await db.query<CopyState>('select source, phase, foreign_keys from kit_copy');
  return state ?? null;
}

export async function createCopyState(tx: Db, source: string): Promise<void> {
  await tx.query('create table kit_copy (source text not null, phase text not null, foreign_keys jsonb not null)');
  await tx.query('create table kit_copy_tables (table_name text primary key, last_rowid bigint not null, copied_rows bigint not null)');
  await tx.query(`insert into kit_copy (source, phase, foreign_keys) values ($1, 'preparing', '[]')`, [source]);
}

export async function setPhase(tx: Db, phase: CopyPhase, foreignKeys?: readonly ForeignKey[]): Promise<void> {
  if (foreignKeys === undefined) await tx.query('update kit_copy set phase = $1', [phase]);
  else await tx.query('update kit_copy set phase = $1, foreign_keys = $2', [phase, json(foreignKeys)]);
}

export async function dropCopyState(tx: Db): Promise<void> {
  await tx.query('drop table kit_copy, kit_copy_tables');
}

/** Where the copy of a table stands; rows are read in the order of SQLite's rowid. */
export interface TableProgress {
  readonly last: bigint;
  readonly rows: bigint;
}

export async function readProgress(db: Db, table: string): Promise<TableProgress> {
  const [found] = await db.query<{ last_rowid: bigint; copied_rows: bigint }>(
    'select last_rowid, copied_rows from kit_copy_tables where table_name = $1',
    [table],
  );
  return found === undefined ? { last: -(2n ** 63n), rows: 0n } : { last: found.last_rowid, rows: found.copied_rows };
}

/** False where another process has written further in the meantime. */
export async function writeProgress(tx: Db, table: string, before: TableProgress, after: TableProgress): Promise<boolean> {
  const { count } = await tx.execute(
    `insert into kit_copy_tables (table_name, last_rowid, copied_rows) values ($1, $2, $3)
     on conflict (table_name) do update set last_rowid = excluded.last_rowid, copied_rows = excluded.copied_rows
       where kit_copy_tables.last_rowid = $4`,
    [table, after.last, after.rows, before.last],
  );
  return count === 1;
}
