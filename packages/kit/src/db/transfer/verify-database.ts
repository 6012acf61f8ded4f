import { quoteName as q } from '../declare/names.ts';
import type { Database } from '../engine/db.ts';
import { checkDrift } from '../migrations/drift.ts';
import { pendingMigrations } from '../migrations/migrate.ts';
import type { MigrationModule } from '../migrations/plan.ts';
import { postgresTables, sqliteTables } from './copied-table.ts';

export interface VerifiedDatabase {
  readonly tables: readonly { readonly table: string; readonly rows: number }[];
  /** In sentences; empty where the database is whole and this version of the app works with it. */
  readonly faults: readonly string[];
}

/** Whether a database that was restored is whole: its pages, references, tables, and what its modules say about their data. Reads everything. */
export async function verifyDatabase(
  database: Database,
  modules: readonly MigrationModule[],
  dataFaults: (database: Database) => Promise<readonly string[]>,
): Promise<VerifiedDatabase> {
  const faults = database.dialect === 'sqlite' ? await fileFaults(database) : [];
  if (faults.length > 0) return { tables: [], faults };
  const pending = await pendingMigrations(database, modules);
  if (pending.length > 0)
    faults.push(
      `Migrations of this version were not applied when the backup was made: ${pending.join(', ')}. Run npx kit migrate after the restore.`,
    );
  // Tables of migrations that are pending are missing, and modules would read them.
  else faults.push(...(await checkDrift(modules, database)).database, ...(await dataFaults(database)));
  return { tables: await countTables(database), faults };
}

async function fileFaults(database: Database): Promise<string[]> {
  const found = await database.query<{ integrity_check: string }>('pragma integrity_check(5)');
  const damaged = found.map((row) => row.integrity_check).filter((each) => each !== 'ok');
  if (damaged.length > 0) return damaged.map((each) => `The file is damaged: ${each}`);
  const broken = await database.query<{ table: string; parent: string; rows: number }>(
    'select "table", parent, count(*) as rows from pragma_foreign_key_check group by "table", parent',
  );
  return broken.map(({ table, parent, rows }) => `${table}: ${rows} rows refer to rows of "${parent}" that do not exist.`);
}

async function countTables(database: Database): Promise<VerifiedDatabase['tables']> {
  const names = await (database.dialect === 'sqlite' ? sqliteTables(database) : postgresTables(database));
  const tables: { table: string; rows: number }[] = [];
  for (const table of names) {
    const [counted] = await database.query<{ rows: number | bigint }>(`select count(*) as rows from ${q(table)}`);
    tables.push({ table, rows: Number(counted?.rows ?? 0) });
  }
  return tables;
}
