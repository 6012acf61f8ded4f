// Owners of endpoints are users of the application, whose table may be anyone's: names are looked up beside the lists, never joined.
import type { UserDirectory } from '../../../auth/people/user-directory.ts';
import { quoteName } from '../../../db/declare/names.ts';
import type { Db } from '../../../db/engine/db.ts';
import { usersNamedLike } from '../../../auth/people/users-named-like.ts';
import { couldBeUserId, tableSql, userIdSql } from '../../../auth/people/user-table.ts';

/** Names that contain a searched text; more than this and the search says too little. */
const FOUND_MAX = 100;

/** User names by id; ids that no user has are missing. */
export async function ownerNames(db: Db, users: UserDirectory | null, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const wanted = users === null ? [] : [...new Set(ids)].filter((id) => couldBeUserId(id, users.table));
  if (users === null || wanted.length === 0) return new Map();
  const { id, username } = users.table;
  const rows = await db.query<{ id: unknown; username: string }>(
    `select ${quoteName(id)} as id, ${quoteName(username)} as username from ${tableSql(users.table)}
     where ${quoteName(id)} in (${wanted.map((_, index) => userIdSql(`$${index + 1}`, users.table, db.dialect)).join(', ')})`,
    wanted,
  );
  return new Map(rows.map((row) => [String(row.id), row.username]));
}

/** The ids of users whose name contains the text. */
export async function ownersNamedLike(db: Db, users: UserDirectory | null, text: string): Promise<readonly string[]> {
  return users === null ? [] : usersNamedLike(db, users, text, FOUND_MAX);
}
