import type { Database } from '../../src/db/index.ts';

interface Shape {
  readonly columns: readonly string[];
  readonly indexes: readonly string[];
}

/** The columns and indexes that the statements create, which are then rolled back; without statements, those of the database. */
export async function shapeAfter(db: Database, statements: readonly string[]): Promise<Shape> {
  let shape: Shape = { columns: [], indexes: [] };
  const undone = new Error('undone');
  await db
    .transaction(async (tx) => {
      for (const statement of statements) await tx.query(statement);
      const rows = async (text: string) => (await tx.query<{ line: string }>(text)).map(({ line }) => line);
      shape =
        db.dialect === 'postgres'
          ? {
              columns: await rows(`select format('%s.%s %s %s', c.relname, a.attname, format_type(a.atttypid, null), a.attnotnull) as line
                from pg_attribute a join pg_class c on c.oid = a.attrelid and c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace
                where a.attnum > 0 and not a.attisdropped`),
              indexes: await rows(`select format('%s %s %s', c.relname, x.indisunique, pg_get_indexdef(x.indexrelid, 1, true)) as line
                from pg_index x join pg_class c on c.oid = x.indrelid and c.relnamespace = current_schema()::regnamespace where x.indnatts = 1`),
            }
          : {
              columns: await rows(`select m.name || '.' || c.name || ' ' || c.type || ' ' || c."notnull" as line
                from sqlite_master m join pragma_table_info(m.name) c where m.type = 'table'`),
              indexes: await rows(`select m.name || ' ' || i."unique" || ' ' || group_concat(c.name) as line
                from sqlite_master m join pragma_index_list(m.name) i join pragma_index_info(i.name) c where m.type = 'table' group by m.name, i.name`),
            };
      throw undone;
    })
    .catch((error: unknown) => {
      if (error !== undone) throw error;
    });
  return shape;
}
