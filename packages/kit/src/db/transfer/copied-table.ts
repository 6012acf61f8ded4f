import { quoteName as q } from '../declare/names.ts';
import type { Database, Db } from '../engine/db.ts';
import { findTable } from '../migrations/found-schema.ts';
import { type CopiedColumn, copiedColumn, definitionOf } from './copied-column.ts';

/** A table that both databases have, with the columns whose values are copied. */
export interface CopiedTable {
  readonly name: string;
  readonly primaryKey: readonly string[];
  readonly columns: readonly CopiedColumn[];
}

/** Columns that PostgreSQL fills from others, such as those of full-text search. */
const GENERATED = `select attname as name from pg_attribute where attrelid = to_regclass(quote_ident($1)) and attgenerated <> '' and not attisdropped`;

/** Tables of the migrations' history, which the target writes itself, of the copy, and of changes whose positions hold in one database only. */
const OWN: ReadonlySet<string> = new Set(['kit_migrations', 'kit_copy', 'kit_copy_tables', 'kit_changes']);

/** The tables of a SQLite file; those behind a full-text index are part of it. */
export async function sqliteTables(db: Db): Promise<string[]> {
  const rows = await db.query<{ name: string }>(
    `select name from pragma_table_list where schema = 'main' and type = 'table' and name not like 'sqlite\\_%' escape '\\' order by name`,
  );
  return rows.map(({ name }) => name).filter((name) => !OWN.has(name));
}

export async function postgresTables(db: Db): Promise<string[]> {
  const rows = await db.query<{ name: string }>(
    `select c.relname as name from pg_class c where c.relkind in ('r', 'p') and c.relnamespace = current_schema()::regnamespace order by 1`,
  );
  return rows.map(({ name }) => name).filter((name) => !OWN.has(name));
}

/** The tables to copy, and what cannot be: the target has the tables of the migrations, the source may have others. */
export async function copiedTables(
  from: Database,
  to: Database,
  without: readonly string[],
): Promise<{ tables: CopiedTable[]; faults: string[] }> {
  const faults: string[] = [];
  const tables: CopiedTable[] = [];
  const known = new Set(await postgresTables(to));
  const names = await sqliteTables(from);
  for (const name of without)
    if (!names.includes(name)) faults.push(`--without names the table "${name}", which the source does not have.`);
  for (const name of names.filter((each) => !without.includes(each))) {
    if (known.has(name)) tables.push(await tableIn(from, to, name, faults));
    else if (await hasRows(from, name))
      faults.push(
        `The table "${name}" has rows, and no migration of the app creates it. Add its module, or leave it out: --without ${name}`,
      );
  }
  return { tables, faults };
}

async function hasRows(db: Db, table: string): Promise<boolean> {
  return (await db.query(`select 1 as found from ${q(table)} limit 1`)).length > 0;
}

async function tableIn(from: Database, to: Database, name: string, faults: string[]): Promise<CopiedTable> {
  const source = await findTable(from, name);
  const target = await findTable(to, name);
  const generated = new Set((await to.query<{ name: string }>(GENERATED, [name])).map((each) => each.name));
  const columns: CopiedColumn[] = [];
  for (const column of source?.columns.keys() ?? []) {
    const found = target?.columns.get(column);
    const definition = found === undefined ? undefined : definitionOf(found.type, found.nullable);
    if (found === undefined) faults.push(`The column "${name}.${column}" is not in the target.`);
    else if (definition === undefined) faults.push(`The column "${name}.${column}" has the type ${found.type}, which cannot be copied.`);
    else columns.push(copiedColumn(column, definition));
  }
  for (const [column, found] of target?.columns ?? [])
    if (source?.columns.has(column) !== true && !generated.has(column) && !found.nullable && !found.hasDefault)
      faults.push(`The column "${name}.${column}" of the target is required, and the source does not have it.`);
  return { name, primaryKey: source?.primaryKey ?? [], columns };
}

/** `orders, row id = 7`: how a message names a row. */
export function rowName({ name, primaryKey }: CopiedTable, row: Readonly<Record<string, unknown>>): string {
  return `${name}, row ${primaryKey.map((column) => `${column} = ${String(row[column])}`).join(', ')}`;
}

/** The rows of all tables of a SQLite file. */
export async function countRows(db: Db): Promise<number> {
  let total = 0;
  for (const name of await sqliteTables(db)) {
    const [counted] = await db.query<{ rows: number }>(`select count(*) as rows from ${q(name)}`);
    total += counted?.rows ?? 0;
  }
  return total;
}
