import type { Db } from '../../db/engine/db.ts';
import { quoteName } from '../../db/declare/names.ts';
import type { User } from './principal.ts';
import { couldBeUserId, flagSql, isTrue, tableSql, userIdSql, type UserTable } from './user-table.ts';

type Row = Pick<User, 'id' | 'username' | 'email'> & {
  readonly asked: string;
  readonly is_active: unknown;
  readonly is_staff: unknown;
  readonly is_superuser: unknown;
};

/** The users with these ids, by the id that was asked for: one statement, by the key of the table. Ids that no user can have are not sent. */
export async function findUsers(db: Db, table: UserTable, ids: readonly string[]): Promise<ReadonlyMap<string, User>> {
  const wanted = [...new Set(ids)].filter((id) => couldBeUserId(id, table));
  if (wanted.length === 0) return new Map();
  const column = (name: string) => `u.${quoteName(name)}`;
  // The types of the columns are not read first: a flag as a boolean is the same in each form.
  const flag = (name: string) => flagSql(column(name), undefined);
  const rows = await db.query<Row>(
    `select o.value as asked, cast(${column(table.id)} as text) as id, ${column(table.username)} as username, ${column(table.email)} as email,
       ${flag(table.isActive)} as is_active, ${flag(table.isStaff)} as is_staff, ${flag(table.isSuperuser)} as is_superuser
     from ${db.dialect === 'postgres' ? 'unnest(cast($1 as text[])) as o(value)' : 'json_each($1) o'}
     join ${tableSql(table)} u on ${column(table.id)} = ${userIdSql('o.value', table, db.dialect)}`,
    [db.dialect === 'postgres' ? wanted : JSON.stringify(wanted)],
  );
  return new Map(
    rows.map(({ asked, is_active, is_staff, is_superuser, ...user }) => [
      asked,
      { ...user, is_active: isTrue(is_active), is_staff: isTrue(is_staff), is_superuser: isTrue(is_superuser) },
    ]),
  );
}
