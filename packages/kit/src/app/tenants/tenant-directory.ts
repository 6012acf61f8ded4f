import type { Membership } from '../../auth/people/membership.ts';
import type { ServiceMembers } from '../../auth/request/service-users.ts';
import type { Principal } from '../../auth/people/principal.ts';
import type { Db } from '../../db/engine/db.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { Exchange } from '../../http/exchange/exchange.ts';
import { type TenantPlace, tenantNamesIn } from './tenant-places.ts';
import type { MembershipBatch, TenantSource } from './tenant-source.ts';

/** A tenant that a request names, with what the caller is in it. */
export interface NamedMembership {
  /** The id of the tenant. */
  readonly tenant: string;
  readonly membership: Membership;
}

/** Who asks for which tenants. */
export interface NamedTenants {
  readonly db: Db;
  readonly principal: Principal;
  /** Ids or slugs, each once. */
  readonly names: readonly string[];
}

/**
 * Tenants that a module stores: those of `tenants()`, the organizations of better-auth. What a request names, what workers ask and how errors read is
 * the same for both.
 */
export interface TenantDirectory {
  /** Where requests name their tenant; a function reads it in its own way. */
  readonly places: readonly TenantPlace[] | ((exchange: Exchange) => string | null);
  /** By name, with one statement. A name that no tenant has, and one of a tenant that the user is not a member of, are left out alike. */
  readonly named: (asked: NamedTenants) => Promise<ReadonlyMap<string, NamedMembership>>;
  /** What users are in tenants, with one statement for many. */
  readonly memberships: MembershipBatch;
  /** Roles that manage a tenant: members, keys, endpoints. */
  readonly managers: readonly string[];
  /** Those of these ids whose tenants nobody works in for now: they are suspended, or being deleted. Default: none ever is. */
  readonly suspended?: (db: Db, tenants: readonly string[]) => Promise<ReadonlySet<string>>;
  /** Default: service users cannot be members. */
  readonly serviceMembers?: ServiceMembers;
  /** Ids of the tenants that a user can act in, so many at most. */
  readonly ofUser: (db: Db, userId: string, limit: number) => Promise<readonly string[]>;
}

/** Tenants that a module provides. */
export interface ModuleTenants extends TenantSource {
  /** Where modules look tenants up without a request. */
  readonly directory?: TenantDirectory;
}

/** The tenants of an app, for modules. */
export interface AppTenants {
  /** Whether requests can have a tenant. */
  readonly exist: boolean;
  /** Null: the app has its own tenants, which nobody can list, or none. */
  readonly directory: TenantDirectory | null;
}

/**
 * The tenant of a request, in this order: the places of the directory, then the tenant of the credential. All of them must name the same tenant; what a
 * person has chosen for a session is only the default. Throws 400 `tenant_conflict`, 403 `not_a_member` and
 * `tenant_suspended`.
 */
export function tenantsOf(directory: TenantDirectory): ModuleTenants {
  const { places, named, memberships } = directory;
  const namesIn = (exchange: Exchange): readonly string[] => {
    if (typeof places !== 'function') return tenantNamesIn(exchange, places);
    const name = places(exchange);
    return name === null ? [] : [name];
  };
  return {
    ...(typeof places === 'function' ? {} : { tenantParameter: places }),
    memberships,
    directory,
    async tenant(exchange) {
      const { principal, db } = exchange;
      if (principal === null) return null;
      const asked = namesIn(exchange);
      const names = wantedNames(asked, principal);
      if (names.length === 0) return null;
      const found = [...(await named({ db, principal, names })).values()];
      // A default that is not possible any more is none.
      if (found.length === 0 && asked.length === 0 && principal.isTenantDefault === true) return null;
      const [first] = found;
      const isOne = found.length === names.length && found.every(({ tenant }) => tenant === first?.tenant);
      // Whether the others exist, or have the caller as a member, makes no difference.
      if (names.length > 1 && !isOne) throw coreErrors.tenant_conflict();
      if (first === undefined) throw coreErrors.not_a_member();
      if (first.membership.isSuspended === true) throw coreErrors.tenant_suspended();
      exchange.knownMembership = first.membership;
      return first.tenant;
    },
  };
}

function wantedNames(asked: readonly string[], { tenant, isTenantDefault = false }: Principal): readonly string[] {
  const ofCredential = tenant === null || tenant === undefined || tenant === '' ? [] : [tenant];
  return isTenantDefault && asked.length > 0 ? asked : [...new Set([...asked, ...ofCredential])];
}
