import type { Db } from '../../db/engine/db.ts';
import { findUser } from './find-user.ts';
import type { User } from './principal.ts';
import type { UserTable } from './user-table.ts';

/**
 * Where users live. Modules that store an owner use only this, so an app may bring its own users and sessions.
 * `table` lets a module join the owner in the same statement as its own row.
 */
export interface UserDirectory {
  /** The table of users and its columns, for joins. */
  readonly table: UserTable;
  /** The user with this id, or null. */
  findById(db: Db, id: string): Promise<User | null>;
  /** By user name or e-mail address. */
  findByLogin(db: Db, login: string): Promise<User | null>;
  /** What the directory has about a user in tables that are no models of the app, without secrets: for the export of the person. Default: nothing. */
  exportUser?(db: Db, id: string): Promise<readonly UserRows[]>;
  /** Removes a user with everything that the directory has, in the transaction that ends an erasure. Default: deletes the row of the table. */
  removeUser?(tx: Db, id: string): Promise<void>;
}

/** Rows of one table about a user. */
export interface UserRows {
  /** Its name. */
  readonly table: string;
  /** As they are in the export. */
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

/** The users of an app. The functions are optional; by default they read the table. */
export type UserSource = Pick<UserDirectory, 'table'> & Partial<UserDirectory>;

export function directoryOf(source: UserSource): UserDirectory {
  if (isComplete(source)) return source;
  const { table } = source;
  return {
    ...source,
    table,
    findById: async (db, id) => (source.findById === undefined ? findUser(db, table, [table.id], id) : source.findById(db, id)),
    findByLogin: async (db, login) =>
      source.findByLogin === undefined ? findUser(db, table, [table.username, table.email], login) : source.findByLogin(db, login),
  };
}

function isComplete(source: UserSource): source is UserDirectory {
  return source.findById !== undefined && source.findByLogin !== undefined;
}
