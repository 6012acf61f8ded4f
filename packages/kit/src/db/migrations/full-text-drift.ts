import type { Db } from '../engine/db.ts';
import { fullTextIndexName, fullTextTriggers, sqliteTables } from '../declare/full-text.ts';
import type { FullTextDefinition, TableDefinition } from '../declare/table-definition.ts';

/** Where the full text of a table is not in the database as its migrations made it. */
export function fullTextDrift(db: Db, table: TableDefinition, fullText: FullTextDefinition): Promise<string[]> {
  return db.dialect === 'sqlite' ? sqliteDrift(db, table, fullText) : postgresDrift(db, table, fullText);
}

async function sqliteDrift(db: Db, table: TableDefinition, fullText: FullTextDefinition): Promise<string[]> {
  const parts = [
    ...Object.entries(sqliteTables(table, fullText)).map(([name, sql]) => ({ kind: 'Table', name, sql })),
    ...Object.entries(fullTextTriggers(table, fullText)).map(([name, sql]) => ({ kind: 'Trigger', name, sql })),
  ];
  const faults: string[] = [];
  for (const { kind, name, sql } of parts) {
    const [found] = await db.query<{ sql: string }>(`select sql from sqlite_master where type in ('table', 'trigger') and name = $1`, [
      name,
    ]);
    // SQLite keeps the text as it was given, but for the words it begins with.
    if (found === undefined) faults.push(`${kind} "${name}" of full text "${fullText.name}" is missing from the database.`);
    else if (found.sql.toLowerCase() !== sql.toLowerCase())
      faults.push(`${kind} "${name}" of full text "${fullText.name}" is different in the database.`);
  }
  return faults;
}

async function postgresDrift(db: Db, table: TableDefinition, fullText: FullTextDefinition): Promise<string[]> {
  const place = `Column "${table.name}.${fullText.name}" of full text`;
  const [column] = await db.query<{ expression: string | null; read: readonly string[] }>(
    `select pg_get_expr(d.adbin, d.adrelid) as expression,
            array(select o.attname::text from pg_depend p join pg_attribute o on o.attrelid = p.refobjid and o.attnum = p.refobjsubid
                  where p.classid = 'pg_attrdef'::regclass and p.objid = d.oid and p.refobjid = a.attrelid and p.refobjsubid not in (0, a.attnum)) as read
     from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum and a.attgenerated = 's'
     where a.attrelid = to_regclass(quote_ident($1)) and a.attname = $2 and not a.attisdropped and a.atttypid = 'tsvector'::regtype`,
    [table.name, fullText.name],
  );
  if (column === undefined) return [`${place} is missing from the database.`];
  const faults: string[] = [];
  const reads = column.expression !== null && [...column.read].sort().join() === [...fullText.columns].sort().join();
  if (!reads || column.expression?.includes(`'${fullText.config}'::regconfig`) !== true)
    faults.push(`${place} is generated otherwise in the database.`);
  const index = fullTextIndexName(fullText);
  const found = await db.query(
    `select 1 as found from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am m on m.oid = c.relam
     join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
     where i.indrelid = to_regclass(quote_ident($1)) and c.relname = $2 and m.amname = 'gin' and i.indisvalid and a.attname = $3`,
    [table.name, index, fullText.name],
  );
  if (found.length === 0) faults.push(`Index "${index}" of full text "${fullText.name}" is missing from the database.`);
  return faults;
}
