import { quoteName as q } from '../declare/names.ts';
import type { Database } from '../engine/db.ts';
import type { TableWork } from './operation-impact.ts';

/** How large a table is today, and how fast this database reads it. */
export interface TableFacts {
  readonly rows: number;
  /** Measured on some of its rows. */
  readonly scanMs: number;
}

/** Rows that are read to measure the speed: some milliseconds. */
const SAMPLE_ROWS = 100_000;

/** How much longer than a scan the work takes: estimates, rather too long. `locks.scaled.test.ts` compares them with the times of a real table. */
const TIMES_A_SCAN: Readonly<Record<TableWork, number>> = { none: 0, scan: 2, index: 12, update: 60, rewrite: 25 };
/** Every text is split into words, and an index of them is built: four to ten times a rewrite. */
const TIMES_OF_FULL_TEXT = 150;

/** Null for a table that does not exist yet. */
export async function readTableFacts(database: Database, table: string): Promise<TableFacts | null> {
  const rows = database.dialect === 'sqlite' ? await sqliteRows(database, table) : await postgresRows(database, table);
  if (rows === null) return null;
  const startedAt = performance.now();
  const [sample] = await database.query<{ rows: number | bigint }>(
    `select count(*) as rows from (select * from ${q(table)} limit ${SAMPLE_ROWS}) sample`,
  );
  const tookMs = performance.now() - startedAt;
  const read = Number(sample?.rows ?? 0);
  return { rows: Math.max(rows, read), scanMs: read === 0 ? 0 : (tookMs * Math.max(rows, read)) / read };
}

export function estimatedMs({ scanMs }: TableFacts, work: TableWork, isFullText: boolean): number {
  return Math.round(scanMs * (isFullText && work === 'rewrite' ? TIMES_OF_FULL_TEXT : TIMES_A_SCAN[work]));
}

async function sqliteRows(database: Database, table: string): Promise<number | null> {
  const [known] = await database.query(`select 1 as found from sqlite_master where type = 'table' and name = $1`, [table]);
  if (known === undefined) return null;
  const [found] = await database.query<{ rows: number | bigint }>(`select count(*) as rows from ${q(table)}`);
  return Number(found?.rows ?? 0);
}

/** As the statistics have it: a count reads the whole table. */
async function postgresRows(database: Database, table: string): Promise<number | null> {
  const [found] = await database.query<{ rows: number; live: number }>(
    `select c.reltuples::float8 as rows, coalesce(pg_stat_get_live_tuples(c.oid), 0)::float8 as live
     from pg_class c where c.oid = to_regclass($1)`,
    [q(table)],
  );
  return found === undefined ? null : Math.max(found.rows, found.live, 0);
}
