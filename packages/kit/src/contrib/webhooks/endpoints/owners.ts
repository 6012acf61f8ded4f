// Owners of endpoints are users of the application, whose table may be anyone's: names are looked up beside the lists, never joined.
import { type UserDirectory } from '../../../auth/people/user-directory.ts';
import { couldBeUserId, tableSql, userIdSql } from '../../../auth/people/user-table.ts';
import { usersNamedLike } from '../../../auth/people/users-named-like.ts';
import { quoteName } from '../../../db/declare/names.ts';
import type { Database, Db } from '../../../db/engine/db.ts';

/** Names that contain a searched text; more than this and the search says too little. */
const FOUND_MAX = 100;

/** The users who own endpoints. `db` is the handle at hand. */
export interface Owners {
  /** User names by id; ids that no user has are missing. */
  names(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** The ids of users whose name contains the text. */
  namedLike(db: Db, text: string): Promise<readonly string[]>;
  /** The id of the owner that somebody typed: a user name, an address, or an id. Null: there is no such user. */
  find(db: Db, typed: string): Promise<string | null>;
}

/** `database` is where the users are. Without users, owners are the ids that the application gives. */
export function ownersIn(users: UserDirectory | null, database: Database): Owners {
  const at = (db: Db): Db => (db.database === database ? db : database);
  return {
    names: async (db, ids) => (users === null ? new Map<string, string>() : namesOf(at(db), users, ids)),
    namedLike: async (db, text) => (users === null ? [] : usersNamedLike(at(db), users, text, FOUND_MAX)),
    async find(db, typed) {
      if (users === null) return typed;
      return ((await users.findByLogin(at(db), typed)) ?? (await users.findById(at(db), typed)))?.id ?? null;
    },
  };
}

async function namesOf(db: Db, { table }: UserDirectory, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const wanted = [...new Set(ids)].filter((id) => couldBeUserId(id, table));
  if (wanted.length === 0) return new Map();
  const { id, username } = table;
  const rows = await db.query<{ id: unknown; username: string }>(
    `select ${quoteName(id)} as id, ${quoteName(username)} as username from ${tableSql(table)}
     where ${quoteName(id)} in (${wanted.map((_, index) => userIdSql(`$${index + 1}`, table, db.dialect)).join(', ')})`,
    wanted,
  );
  return new Map(rows.map((row) => [String(row.id), row.username]));
}
