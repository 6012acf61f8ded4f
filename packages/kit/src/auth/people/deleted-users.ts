// Ids of users who were deleted. An owner that the user directory does not have is one of them, or never was a user.
import type { Database, Db } from '../../db/engine/db.ts';
import { columnTypes } from './user-table.ts';

const migrated = new WeakSet<Database>();

/** A database with only the tables of modules, for a program without an app, has no list of deleted users. */
async function hasList(db: Db): Promise<boolean> {
  if (migrated.has(db.database)) return true;
  if ((await columnTypes(db, 'kit_deleted_users')) === undefined) return false;
  if (!db.isTransaction) migrated.add(db.database);
  return true;
}

/** Called in the transaction that deletes the user. */
export async function rememberDeletedUser(tx: Db, userId: string, now: Date): Promise<void> {
  if (!(await hasList(tx))) return;
  await tx.query('insert into kit_deleted_users (user_id, deleted_at) values ($1, $2) on conflict (user_id) do nothing', [userId, now]);
}

/** Those of the ids that were deleted users, with one statement by key. */
export async function findDeletedUsers(db: Db, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const wanted = [...new Set(ids)];
  if (wanted.length === 0 || !(await hasList(db))) return new Set();
  const [list, values] =
    db.dialect === 'postgres' ? ['= any(cast($1 as text[]))', wanted] : ['in (select value from json_each($1))', JSON.stringify(wanted)];
  const rows = await db.query<{ user_id: string }>(`select user_id from kit_deleted_users where user_id ${list}`, [values]);
  return new Set(rows.map(({ user_id }) => user_id));
}
