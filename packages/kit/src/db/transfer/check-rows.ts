import { quoteName as q } from '../declare/names.ts';
import type { Database, Db } from '../engine/db.ts';
import { type CopiedTable, rowName } from './copied-table.ts';
import { insertRows, readRows } from './table-rows.ts';

/** Rows of a table that are listed by name; the rest is counted. */
const LISTED_MAX = 5;

/** Why rows of the source cannot be stored in the target: all of them are found before the first is written. */
export async function checkRows(
  from: Database,
  to: Database,
  tables: readonly CopiedTable[],
  onProgress: (rows: number) => void,
): Promise<string[]> {
  const faults = await brokenReferences(from);
  for (const table of tables) {
    faults.push(...(await unfitValues(from, table, onProgress)));
    faults.push(...(await collisions(from, to, table)));
  }
  return faults;
}

async function unfitValues(from: Database, table: CopiedTable, onProgress: (rows: number) => void): Promise<string[]> {
  const faults: string[] = [];
  let more = 0;
  for await (const rows of readRows(from, table)) {
    for (const row of rows) {
      for (const { name, encode } of table.columns) {
        try {
          encode(row[name]);
        } catch (error) {
          if (faults.length < LISTED_MAX) faults.push(`${rowName(table, row)}: ${detailOf(error)}`);
          else more++;
        }
      }
    }
    onProgress(rows.length);
  }
  if (more > 0) faults.push(`${table.name}: ${more} more values do not fit.`);
  return faults;
}

function detailOf(error: unknown): string {
  const { detail, message } = error as { detail?: string; message: string };
  return detail ?? message;
}

/** Rows that refer to rows that are not there: SQLite allows them where foreign keys were off. */
async function brokenReferences(from: Database): Promise<string[]> {
  const found = await from.query<{ table: string; parent: string; rows: number }>(
    'select "table", parent, count(*) as rows from pragma_foreign_key_check group by "table", parent order by 1, 2',
  );
  return found.map(
    ({ table, parent, rows }) => `${table}: ${rows} ${rows === 1 ? 'row refers' : 'rows refer'} to rows of "${parent}" that do not exist.`,
  );
}

/**
 * Unique indexes on an expression, such as `lower(email)`: the two databases do not fold the same letters. The rows are put into a temporary table,
 * and PostgreSQL builds the index there.
 */
async function collisions(from: Database, to: Database, table: CopiedTable): Promise<string[]> {
  const indexes = await to.query<{ name: string; definition: string }>(
    `select c.relname as name, pg_get_indexdef(i.indexrelid) as definition from pg_index i join pg_class c on c.oid = i.indexrelid
     where i.indrelid = to_regclass(quote_ident($1)) and i.indisunique and i.indexprs is not null order by 1`,
    [table.name],
  );
  if (indexes.length === 0) return [];
  return to.transaction((tx) => collisionsIn(tx, from, table, indexes));
}

async function collisionsIn(
  tx: Db,
  from: Database,
  table: CopiedTable,
  indexes: readonly { readonly name: string; readonly definition: string }[],
): Promise<string[]> {
  const staged = 'kit_copy_staged';
  await tx.query(`create temporary table ${staged} (like ${q(table.name)}) on commit drop`);
  try {
    for await (const rows of readRows(from, table)) await insertRows(tx, { ...table, name: staged }, rows);
  } catch {
    // A value that does not fit is reported by itself.
    return [];
  }
  const faults: string[] = [];
  for (const { name, definition } of indexes) {
    const statement = definition.replace(
      /^CREATE UNIQUE INDEX \S+ ON \S+/,
      `CREATE UNIQUE INDEX kit_copy_unique_${faults.length} ON pg_temp.${staged}`,
    );
    try {
      await tx.transaction((savepoint) => savepoint.query(statement));
    } catch (error) {
      faults.push(`${table.name}: rows are equal for the unique index "${name}" on PostgreSQL: ${postgresDetail(error)}`);
    }
  }
  await tx.query(`drop table if exists pg_temp.${staged}`);
  return faults;
}

/** `Key (lower(email))=(a@example.com) is duplicated.` */
function postgresDetail(error: unknown): string {
  for (let each: unknown = error; each instanceof Error; each = each.cause) {
    const { detail } = each as { detail?: unknown };
    if (typeof detail === 'string' && detail.startsWith('Key')) return detail;
  }
  return (error as Error).message;
}
