import type { User } from '../../../auth/people/principal.ts';
import type { PermissionContext } from '../../../permissions/permission.ts';

/**
 * The caller that a decision is about: `{ user, tenant }`, or what `await caller()` returns in a handler. The tenant is part of every question,
 * because a grant counts in its object's tenant only. There is no value for "any tenant".
 */
export interface Asker {
  /** Null for an anonymous caller. */
  readonly user: User | null;
  /** The tenant that the caller acts in. Null for a caller without a tenant, who reaches objects without a tenant. */
  readonly tenant: string | null;
}

/** An asker with its groups, which are read once and used for every decision of a request. */
export interface KnownAsker extends Asker {
  readonly now: Date;
  readonly groups: readonly string[];
  /** The request as permissions see it; of a program, one without headers and scopes. */
  readonly permission?: PermissionContext;
}

/** Types are not enough: a program without them could leave the tenant out. */
export function requireAsker(place: string, asker: unknown): asserts asker is Asker {
  const { user, tenant } = (typeof asker === 'object' && asker !== null ? asker : {}) as {
    readonly user?: unknown;
    readonly tenant?: unknown;
  };
  if (user !== null && (typeof user !== 'object' || typeof (user as Partial<User>).id !== 'string'))
    throw new TypeError(`${place}: the asker must be { user, tenant }, with a user or null. In a handler, pass await caller().`);
  if (tenant !== null && (typeof tenant !== 'string' || tenant === ''))
    throw new TypeError(
      `${place}: the asker has no tenant. Pass { user, tenant } with a non-empty string, or null for a caller without a tenant. In a handler, pass await caller().`,
    );
}
