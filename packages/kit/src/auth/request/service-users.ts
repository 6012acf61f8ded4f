import type { Db } from '../../db/engine/db.ts';
import type { AuditEntry } from './audit-sink.ts';
import type { User } from '../people/principal.ts';

/** Who makes a change, and in which request. */
export interface ServiceUserChange {
  readonly by: AuditEntry['actor'];
  readonly requestId: string | null;
}

/** Users of the app that are no people: nobody logs in as them. The module that stores the users makes them. */
export interface UsersWithoutLogin {
  /** An active user without password, address and staff rights. `username` is free to choose: no person has it. */
  create(tx: Db, username: string, change: ServiceUserChange): Promise<Pick<User, 'id'>>;
  /** Deletes the user, as a deletion by staff does. */
  remove(tx: Db, id: string, change: ServiceUserChange): Promise<void>;
}

/** Which users are service users. The API keys module provides it, because these own keys and do nothing else. */
export interface ServiceUserSource {
  /** Those of these users. */
  among(db: Db, userIds: readonly string[]): Promise<ReadonlySet<string>>;
}

/** Members of tenants that are no people. Whoever stores tenants provides it. */
export interface ServiceMembers {
  /** Adds the user with one role. Throws where `by` cannot give the role, and for the role of owners. */
  add(
    tx: Db,
    member: { readonly tenant: string; readonly userId: string; readonly role: string },
    change: ServiceUserChange,
  ): Promise<void>;
  /** Takes the membership away. */
  remove(tx: Db, member: { readonly tenant: string; readonly userId: string }, change: ServiceUserChange): Promise<void>;
}
