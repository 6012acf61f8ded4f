import type { Db } from '../../db/engine/db.ts';
import type { User } from './principal.ts';

/** Who somebody is at an identity provider. `issuer` and `subject` together never change. */
export interface ExternalIdentity {
  readonly issuer: string;
  readonly subject: string;
}

/** A user found by an identity, with what is known of the claims that were applied last. */
export interface KnownIdentity {
  readonly user: User;
  /** Digest of the groups that were applied last; null when none were. */
  readonly groupsDigest: string | null;
  /** When the token was issued whose groups were applied last. */
  readonly groupsAt: Date | null;
}

export interface NewIdentity extends ExternalIdentity {
  /** A proposal: the user gets a similar name when it is taken. */
  readonly username: string;
  readonly email: string | null;
  /** Only an address that the provider has verified is stored, and only such a one may be matched with a user. */
  readonly emailVerified: boolean;
  /** Links the identity to the user who has the verified address, instead of creating one. */
  readonly linkVerifiedEmail: boolean;
}

export interface ClaimedGroups extends ExternalIdentity {
  readonly names: readonly string[];
  readonly digest: string;
  readonly issuedAt: Date;
}

/** Users who log in at an identity provider. The accounts module provides one. */
export interface IdentityDirectory {
  /** True where the user may do nothing as staff before a second factor is proved. */
  needsSecondFactor(db: Db, user: User): boolean;
  /** One statement. Inactive users are found, too. */
  find(db: Db, identity: ExternalIdentity): Promise<KnownIdentity | null>;
  /** Creates the user and the identity in one transaction. Concurrent calls for one identity return one user. */
  provision(db: Db, identity: NewIdentity): Promise<User>;
  /** Sets the user's memberships in the groups that are managed by the issuer; other groups stay as they are. An older token changes nothing. */
  applyGroups(db: Db, user: User, groups: ClaimedGroups): Promise<void>;
}
