import type { Membership } from '../../auth/people/membership.ts';
import type { Principal, User } from '../../auth/people/principal.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Exchange } from '../../http/exchange/exchange.ts';
import type { TenantPlace } from './tenant-places.ts';

/** Whose membership in which tenant. */
export interface MembershipQuestion {
  readonly user: User;
  readonly tenant: string;
  /** Who sent the request. Without one (a worker asks) its scheme is `standing`, and it has no claims and no tenant. */
  readonly principal: Principal;
  readonly db: Db;
}

/** A user in a tenant. */
export interface TenantUser {
  readonly userId: string;
  readonly tenant: string;
}

/** What the users are in these tenants now, in the order given; null for a user who is not a member. */
export type MembershipBatch = (db: Db, asked: readonly TenantUser[]) => Promise<readonly (Membership | null)[]>;

/** The tenants of an app: what `createApp({ tenant, membership })` declares, or a module that stores organizations. */
export interface TenantSource {
  /** Whose tenant a request acts for; asked by tenant throttles and tenant-scoped modules. */
  readonly tenant?: (exchange: Exchange) => string | null | Promise<string | null>;
  /**
   * What the user is in the tenant that `tenant` found; null when the user is not a member, which rejects the request with 403
   * `not_a_member`. Asked once per request, when the tenant or the membership is first needed. Anonymous callers then have no tenant.
   * Also asked for streams, webhook endpoints and jobs, one user at a time, unless `memberships` is given.
   */
  readonly membership?: (asked: MembershipQuestion) => Membership | null | Promise<Membership | null>;
  /**
   * What many users are in their tenants, with one statement, for streams, webhook endpoints and jobs, which outlive requests. Without `membership`,
   * requests are decided by it, too. Default: `membership` is asked for each user. `'not known'`: the app cannot answer without a request, because
   * memberships are in access tokens; what a former member has set up goes on, and startup does not warn of it.
   */
  readonly memberships?: MembershipBatch | 'not known';
  /**
   * Where `tenant` reads the name: `{ header: 'X-Team' }`. It is shown in the error `tenant_required` and in the OpenAPI document, so that generated
   * clients take it. `tenants()` and `betterAuth()` declare theirs. Default: nothing is shown.
   */
  readonly tenantParameter?: TenantPlace | readonly TenantPlace[];
}
