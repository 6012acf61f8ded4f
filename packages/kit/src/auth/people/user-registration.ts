import type { Db } from '../../db/engine/db.ts';
import type { User } from './principal.ts';

/** A person who proved an e-mail address and wants an account. */
export interface NewPerson {
  readonly username: string;
  readonly password: string;
  /** Proved by a link that was sent to it. */
  readonly email: string;
}

/** Creates accounts for people who were invited. The accounts module provides it where `signUp` is `'invitation'`. */
export interface UserRegistration {
  /**
   * Checks the person and hashes the password, which is slow, and returns what creates the user in a transaction. Both throw errors that name the
   * fields of the request.
   */
  prepare(db: Db, person: NewPerson, change: { readonly requestId: string | null }): Promise<(tx: Db) => Promise<User>>;
}
