import { quoteName as q } from '../declare/names.ts';
import type { Db } from '../engine/db.ts';
import type { CopiedTable } from './copied-table.ts';

export type CopiedRow = Readonly<Record<string, unknown>>;

/** The name under which SQLite's rowid is read. */
export const ROWID = 'kit_rowid';

const FIRST_ROWID = -(2n ** 63n);
/** Rows that are read, and written in one transaction. */
const CHUNK_ROWS = 250;
/** PostgreSQL counts the parameters of a statement in 16 bits. */
const PARAMETERS_MAX = 65_535;

/** The rows of a table of a SQLite file after a rowid, in its order. */
export function readRows(from: Db, { name, columns }: CopiedTable, after = FIRST_ROWID): AsyncIterableIterator<CopiedRow[]> {
  const list = columns.map((column) => q(column.name)).join(', ');
  return from.stream<CopiedRow>(`select rowid as ${ROWID}, ${list} from ${q(name)} where rowid > $1 order by rowid`, [after], CHUNK_ROWS);
}

/** All rows of a table, in any order. */
export function readAll(db: Db, { name, columns }: CopiedTable): AsyncIterableIterator<CopiedRow[]> {
  return db.stream<CopiedRow>(`select ${columns.map((column) => q(column.name)).join(', ')} from ${q(name)}`, [], CHUNK_ROWS);
}

export async function insertRows(tx: Db, { name, columns }: CopiedTable, rows: readonly CopiedRow[]): Promise<void> {
  const list = columns.map((column) => q(column.name)).join(', ');
  const perStatement = Math.max(1, Math.floor(PARAMETERS_MAX / columns.length));
  for (let start = 0; start < rows.length; start += perStatement) {
    const parameters: unknown[] = [];
    const values = rows.slice(start, start + perStatement).map((row) => {
      const places = columns.map((column) => `$${parameters.push(column.encode(row[column.name]))}`);
      return `(${places.join(', ')})`;
    });
    await tx.query(`insert into ${q(name)} (${list}) values ${values.join(', ')}`, parameters);
  }
}
