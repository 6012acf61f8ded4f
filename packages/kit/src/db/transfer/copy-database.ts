import { isKitError } from '../../errors/kit-error.ts';
import { quoteName as q } from '../declare/names.ts';
import { ensureBackfills, hasBackfills } from '../backfills/backfill-state.ts';
import type { Database } from '../engine/db.ts';
import { migrate, pendingMigrations } from '../migrations/migrate.ts';
import type { MigrationModule } from '../migrations/plan.ts';
import { checkRows } from './check-rows.ts';
import { type CopiedTable, copiedTables, postgresTables } from './copied-table.ts';
import { CopyFailed } from './copy-failed.ts';
import { createCopyState, dropCopyState, readCopyState, readProgress, setPhase, writeProgress } from './copy-state.ts';
import { addForeignKeys, dropForeignKeys } from './foreign-keys.ts';
import { RowDigest } from './row-digest.ts';
import { insertRows, readAll, readRows, ROWID } from './table-rows.ts';

export interface CopyOptions {
  /** A SQLite file. Nothing may write to it until the copy is complete. */
  readonly from: Database;
  /** An empty PostgreSQL database, or one into which this copy was begun. */
  readonly to: Database;
  /** The modules whose tables are in the database. */
  readonly modules: readonly MigrationModule[];
  /** Tables of the source that stay behind. */
  readonly without?: readonly string[];
  /** Asked of each side at the end: what is wrong with its data. */
  readonly verify?: (database: Database) => Promise<readonly string[]>;
  readonly onProgress?: (step: CopyStep, rows: number) => void;
}

export type CopyStep = 'check' | 'copy' | 'compare';

export interface CopiedTableReport {
  readonly table: string;
  readonly rows: number;
  readonly checksum: string;
}

/** Copies every row of a SQLite file into PostgreSQL. After a kill it goes on where it was: a batch and its place are written in one transaction. */
export async function copyDatabase({
  from,
  to,
  modules,
  without = [],
  verify,
  onProgress = () => {},
}: CopyOptions): Promise<CopiedTableReport[]> {
  const pending = await pendingMigrations(from, modules);
  if (pending.length > 0) throw new CopyFailed([`The source is not up to date (${pending.join(', ')}): run npx kit migrate on it first.`]);
  await prepare(from, to, modules);
  const { tables, faults } = await copiedTables(from, to, without);
  if (faults.length > 0) throw new CopyFailed(faults);
  if ((await phaseOf(to)) === 'checking') {
    const problems = await checkRows(from, to, tables, (rows) => onProgress('check', rows));
    if (problems.length > 0) throw new CopyFailed(problems);
    await setPhase(to, 'copying');
  }
  if ((await phaseOf(to)) === 'copying') {
    for (const table of tables) await copyTable(from, to, table, (rows) => onProgress('copy', rows));
    await to.transaction(async (tx) => {
      await addForeignKeys(tx, (await readCopyState(tx))?.foreign_keys ?? []);
      await setPhase(tx, 'closing');
    });
  }
  const report = await compare(from, to, tables, (rows) => onProgress('compare', rows));
  const wrong = (await verify?.(to)) ?? [];
  if (wrong.length > 0) throw new CopyFailed(wrong);
  await to.query('analyze');
  await to.transaction(dropCopyState);
  return report;
}

async function phaseOf(to: Database): Promise<string | undefined> {
  return (await readCopyState(to))?.phase;
}

/** The tables of the migrations, empty and without foreign keys. */
async function prepare(from: Database, to: Database, modules: readonly MigrationModule[]): Promise<void> {
  const state = await readCopyState(to);
  if (state !== null && state.source !== from.url)
    throw new CopyFailed([`A copy of ${state.source} into this database is not complete. Complete it, or give an empty database.`]);
  if (state === null) {
    const found = await postgresTables(to);
    if (found.length > 0 || (await hasHistory(to)))
      throw new CopyFailed([
        `The target is not empty: it has ${found.length === 1 ? 'the table' : 'tables such as'} "${found[0] ?? 'kit_migrations'}". Create an empty database.`,
      ]);
    await to.transaction((tx) => createCopyState(tx, from.url));
  } else if (state.phase !== 'preparing') return;
  // How far they are is copied with the rows.
  if (await hasBackfills(from)) await ensureBackfills(to);
  await migrate(to, modules);
  await to.transaction(async (tx) => {
    // What migrations insert is in the source, as it is now.
    const tables = await postgresTables(tx);
    if (tables.length > 0) await tx.query(`truncate ${tables.map(q).join(', ')}`);
    await setPhase(tx, 'checking', await dropForeignKeys(tx));
  });
}

async function hasHistory(to: Database): Promise<boolean> {
  const [found] = await to.query<{ found: boolean }>(`select to_regclass('kit_migrations') is not null as found`);
  return found?.found === true;
}

async function copyTable(from: Database, to: Database, table: CopiedTable, onRows: (rows: number) => void): Promise<void> {
  let before = await readProgress(to, table.name);
  onRows(Number(before.rows));
  for await (const rows of readRows(from, table, before.last)) {
    const after = { last: BigInt(rows.at(-1)?.[ROWID] as number | bigint), rows: before.rows + BigInt(rows.length) };
    try {
      await to.transaction(async (tx) => {
        if (!(await writeProgress(tx, table.name, before, after)))
          throw new CopyFailed([`Another process copies into this database. Wait until it has finished.`]);
        await insertRows(tx, table, rows);
      });
    } catch (error) {
      if (isKitError(error)) throw new CopyFailed([`Rows of "${table.name}" cannot be stored: ${error.message}`], error);
      throw error;
    }
    before = after;
    onRows(rows.length);
  }
}

/** Reads both sides again: rows that were changed, lost or doubled differ in the sum. */
async function compare(
  from: Database,
  to: Database,
  tables: readonly CopiedTable[],
  onRows: (rows: number) => void,
): Promise<CopiedTableReport[]> {
  const report: CopiedTableReport[] = [];
  const faults: string[] = [];
  for (const table of tables) {
    const [source, target] = [new RowDigest(table.columns), new RowDigest(table.columns)];
    for (const [db, digest] of [
      [from, source],
      [to, target],
    ] as const)
      for await (const rows of readAll(db, table)) {
        for (const row of rows) digest.add(row);
        if (db === from) onRows(rows.length);
      }
    if (source.rows !== target.rows) faults.push(`"${table.name}" has ${source.rows} rows in the source and ${target.rows} in the target.`);
    else if (source.checksum !== target.checksum) faults.push(`"${table.name}" has other values in the target.`);
    report.push({ table: table.name, rows: target.rows, checksum: target.checksum });
  }
  if (faults.length > 0)
    throw new CopyFailed([
      ...faults,
      'The source was changed while it was copied. Stop everything that writes to it, and copy into an empty database.',
    ]);
  return report;
}
