import type { Db } from '../db/db.ts';
import type { User } from './principal.ts';

/**
 * Where users live. Modules that store an owner use only this, so an app may bring its own users and sessions.
 * `table` lets a module join the owner in the same statement as its own row.
 */
export interface UserDirectory {
  readonly table: {
    readonly name: string;
    /** Column names. */
    readonly id: string;
    readonly username: string;
    readonly email: string;
    readonly isActive: string;
    readonly isStaff: string;
    readonly isSuperuser: string;
    /** The SQL type of `id`, `uuid` unless said: modules store owners as text and cast them for the join. */
    readonly idType?: 'uuid' | 'text' | 'bigint' | 'integer';
  };
  findById(db: Db, id: string): Promise<User | null>;
  /** By user name or e-mail address. */
  findByLogin(db: Db, login: string): Promise<User | null>;
}
