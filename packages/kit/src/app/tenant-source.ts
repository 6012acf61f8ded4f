import type { Membership } from '../auth/membership.ts';
import type { Principal, User } from '../auth/principal.ts';
import type { Db } from '../db/db.ts';
import type { Exchange } from '../http/exchange.ts';

/** Whose membership in which tenant. */
export interface MembershipQuestion {
  readonly user: User;
  readonly tenant: string;
  readonly principal: Principal;
  readonly db: Db;
}

/** A user in a tenant. */
export interface TenantUser {
  readonly userId: string;
  readonly tenant: string;
}

/** The tenants of an app: what `createApp({ tenant, membership })` declares, or a module that stores organizations. */
export interface TenantSource {
  /** Whose tenant a request acts for; asked by tenant throttles and tenant-scoped modules. */
  readonly tenant?: (exchange: Exchange) => string | null | Promise<string | null>;
  /**
   * What the user is in the tenant that `tenant` found; null when the user is not a member, which rejects the request with 403
   * `not_a_member`. Asked once per request, when the tenant or the membership is first needed. Anonymous callers then have no tenant.
   */
  readonly membership?: (asked: MembershipQuestion) => Membership | null | Promise<Membership | null>;
}

/** The tenants of a module that stores them. */
export interface TenantDirectory extends TenantSource {
  /** What the users are in these tenants now, in the order given, with one statement; null for a user who is not a member. For streams, which outlive what their request proved. */
  readonly memberships?: (db: Db, asked: readonly TenantUser[]) => Promise<readonly (Membership | null)[]>;
}
