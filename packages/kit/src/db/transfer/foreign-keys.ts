import { quoteName as q } from '../declare/names.ts';
import type { Db } from '../engine/db.ts';

/** A foreign key, as PostgreSQL prints it. */
export interface ForeignKey {
  readonly table: string;
  readonly name: string;
  readonly definition: string;
}

/** Dropped while rows are copied: tables that refer to each other, or to themselves, have no order in which every row finds its parent. */
export async function dropForeignKeys(tx: Db): Promise<ForeignKey[]> {
  const keys = await tx.query<ForeignKey>(
    `select r.relname as "table", c.conname as name, pg_get_constraintdef(c.oid) as definition
     from pg_constraint c join pg_class r on r.oid = c.conrelid
     where c.contype = 'f' and c.conparentid = 0 and r.relnamespace = current_schema()::regnamespace order by 1, 2`,
  );
  for (const { table, name } of keys) await tx.query(`alter table ${q(table)} drop constraint ${q(name)}`);
  return keys;
}

/** Adding one checks every row. */
export async function addForeignKeys(tx: Db, keys: readonly ForeignKey[]): Promise<void> {
  for (const { table, name, definition } of keys) await tx.query(`alter table ${q(table)} add constraint ${q(name)} ${definition}`);
}
