import type { Db } from '../../../db/engine/db.ts';
import { quoteName } from '../../../db/declare/names.ts';

interface Reference {
  readonly schema: string | null;
  readonly table: string;
  readonly column: string;
}

/** Foreign keys that refuse the deletion of what they refer to: no action and restrict. */
const REFUSING = {
  postgres: `select n.nspname as schema, c.relname as "table", a.attname as "column"
    from pg_constraint f
    join pg_class c on c.oid = f.conrelid
    join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = f.conrelid and a.attnum = f.conkey[1]
    where f.contype = 'f' and f.confrelid = 'users'::regclass and f.confdeltype in ('a', 'r')
    order by 2, 3`,
  sqlite: `select null as "schema", m.name as "table", f."from" as "column"
    from sqlite_master m join pragma_foreign_key_list(m.name) f
    where m.type = 'table' and f."table" = 'users' and f.on_delete in ('NO ACTION', 'RESTRICT')
    order by 2, 3`,
} as const;

/** Where rows refer to a user and would refuse its deletion: `orders (owner_id)`. Read from the schema, so it also has tables that the kit did not create. */
export async function rowsThatKeep(tx: Db, userId: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const { schema, table, column } of await tx.query<Reference>(REFUSING[tx.dialect], [])) {
    const place = `${schema === null ? '' : `${quoteName(schema)}.`}${quoteName(table)}`;
    const rows = await tx.query(`select 1 as found from ${place} where ${quoteName(column)} = $1 limit 1`, [userId]);
    if (rows.length > 0) found.push(`${table} (${column})`);
  }
  return found;
}
