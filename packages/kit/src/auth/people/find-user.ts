import type { Db } from '../../db/engine/db.ts';
import { quoteName } from '../../db/declare/names.ts';
import type { User } from './principal.ts';
import { columnTypes, couldBeUserId, flagSql, isTrue, tableSql, userIdSql, type UserTable } from './user-table.ts';

type Row = Pick<User, 'id' | 'username' | 'email'> & Readonly<Record<'is_active' | 'is_staff' | 'is_superuser', unknown>>;

/** The user with this value in one of these columns. */
export async function findUser(db: Db, table: UserTable, by: readonly string[], value: string): Promise<User | null> {
  const byId = by.includes(table.id);
  if (byId && !couldBeUserId(value, table)) return null;
  const types = await columnTypes(db, table.name);
  const flag = (name: string) => flagSql(quoteName(name), types?.get(name));
  const wanted = byId ? userIdSql('$1', table, db.dialect) : '$1';
  const [row] = await db.query<Row>(
    `select cast(${quoteName(table.id)} as text) as id, ${quoteName(table.username)} as username, ${quoteName(table.email)} as email,
       ${flag(table.isActive)} as is_active, ${flag(table.isStaff)} as is_staff, ${flag(table.isSuperuser)} as is_superuser
     from ${tableSql(table)} where ${by.map((name) => `${quoteName(name)} = ${wanted}`).join(' or ')} limit 1`,
    [value],
  );
  if (row === undefined) return null;
  return { ...row, is_active: isTrue(row.is_active), is_staff: isTrue(row.is_staff), is_superuser: isTrue(row.is_superuser) };
}
