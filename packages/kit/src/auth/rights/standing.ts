import type { Db } from '../../db/engine/db.ts';
import type { Membership } from '../people/membership.ts';
import type { Principal, User } from '../people/principal.ts';

/** The scheme of a principal without a credential: nobody sent a request, a worker asks what its user still is. */
export const STANDING_SCHEME = 'standing';

/**
 * Why somebody may not act: `deleted` was a user once, `unknown_user` never was, `not_known` is a member of a
 * tenant nobody can be asked about, `suspended` of one that nobody acts in for now. */
export type Hindrance = 'deleted' | 'unknown_user' | 'inactive' | 'not_a_member' | 'not_known' | 'suspended';

/** What somebody may still do, now: in general, or in a tenant. */
export type Standing =
  | {
      /** The person may act. */
      readonly ok: true;
      /** As the user directory has the user now. */
      readonly user: User;
      /** What the user is in the tenant now; null where no tenant was asked about. */
      readonly membership: Membership | null;
    }
  | {
      /** The person may not act. */
      readonly ok: false;
      /** The first reason that applies. */
      readonly why: Hindrance;
    };

/** Who is asked about. */
export interface StandingQuestion {
  /** The id of a user, or of an owner that need not be one. */
  readonly userId: string;
  /** The tenant that the person acts in; null or an empty string: none. */
  readonly tenant: string | null;
  /** Of a request whose credential was verified just now: its user is not looked up again. */
  readonly principal?: Principal;
}

/**
 * How memberships are found without a request: `asked` of the app; `credential`: its function reads what only a credential has; `undeclared`: there is
 * no function; `not_known`: the app says so.
 */
export type MembershipSource = 'asked' | 'credential' | 'undeclared' | 'not_known';

/** Asks whether people may still act. The only source of this answer: requests, streams, workers and jobs share it. */
export interface Standings {
  /** Answers in the order asked: one statement for the users, one for the memberships. `db` is the database of the users. Rejects when it cannot be read. */
  of(db: Db, asked: readonly StandingQuestion[]): Promise<readonly Standing[]>;
  /** For startup: asks the app once, about nobody. */
  membershipSource(db: Db): Promise<MembershipSource>;
}

/** Everything that a standing is decided by. */
export interface StandingFacts {
  /** Null: the user directory has no such user. */
  readonly user: Pick<User, 'is_active'> | null;
  /** Whether the directory had this user once. */
  readonly wasDeleted: boolean;
  /** `undefined`: no tenant. Null: not a member. `not_known`: the app cannot be asked. */
  readonly membership: Membership | null | undefined | 'not_known';
}

/** The first reason why somebody with these facts may not act; null: there is none. Pure: whoever reads the facts with a statement of its own asks here. */
export function judge({ user, wasDeleted, membership }: StandingFacts): Hindrance | null {
  if (user === null) return wasDeleted ? 'deleted' : 'unknown_user';
  if (!user.is_active) return 'inactive';
  if (membership === 'not_known') return 'not_known';
  if (membership === null) return 'not_a_member';
  return membership?.isSuspended === true ? 'suspended' : null;
}

/**
 * The reason why somebody may not act, unless the caller lets it pass: an owner of a webhook endpoint need not be a user. What a deleted user, a
 * deactivated one or a former member had is never let pass.
 */
export function hindranceOf(standing: Standing, letPass: readonly ('unknown_user' | 'not_known')[] = []): Hindrance | null {
  if (standing.ok) return null;
  const allowed: readonly Hindrance[] = letPass;
  return allowed.includes(standing.why) ? null : standing.why;
}
