import type { Db } from '../../db/engine/db.ts';
import { quoteName } from '../../db/declare/names.ts';
import { containsSql } from '../../db/sql/portable-sql.ts';
import type { UserDirectory } from './user-directory.ts';
import { tableSql } from './user-table.ts';

/** Users whose names are looked at: the newest. What contains a text has no index, and a table of users may have millions. */
const LOOKED_AT_MAX = 50_000;

/** The ids of users whose name contains the text, and of the one who logs in with it. */
export async function usersNamedLike(db: Db, users: UserDirectory, text: string, limit: number): Promise<readonly string[]> {
  const [id, username] = [quoteName(users.table.id), quoteName(users.table.username)];
  const rows = await db.query<{ id: unknown }>(
    `select id from (select ${id} as id, ${username} as username from ${tableSql(users.table)} order by ${id} desc limit ${LOOKED_AT_MAX}) newest
     where ${containsSql('username', '$1', db.dialect)} limit ${limit}`,
    [text],
  );
  const exact = await users.findByLogin(db, text);
  return [...new Set([...rows.map((row) => String(row.id)), ...(exact === null ? [] : [exact.id])])];
}
