import type { Db } from '../../db/engine/db.ts';
import { quoteName } from '../../db/declare/names.ts';
import type { Policy, StoredColumn } from '../policy/policy.ts';
import { inList } from '../policy/in-list.ts';

/**
 * Rows that are deleted together may refer to each other. SQLite checks the references of each row as it is deleted, so that the order of the
 * table would decide: the references among them are removed first.
 */
export async function detachFromEachOther(
  db: Db,
  { statements, selfReferences }: Policy,
  column: StoredColumn,
  values: readonly unknown[],
): Promise<void> {
  for (const { name, to } of selfReferences) {
    const parameters: unknown[] = [];
    const among = (table: string) => inList(db, `${table}.${quoteName(column.name)}`, column, values, parameters);
    const own = among('t0');
    const referred = `select t1.${quoteName(to)} from ${statements.table} t1 where ${among('t1')}`;
    const text = `update ${statements.table} as t0 set ${quoteName(name)} = null where ${own} and t0.${quoteName(name)} in (${referred})`;
    await db.execute(text, parameters, { replanned: true });
  }
}
