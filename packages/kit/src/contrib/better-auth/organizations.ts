import { type ModuleTenants, tenantsOf } from '../../app/tenants/tenant-directory.ts';
import type { Principal } from '../../auth/people/principal.ts';
import type { AuditEntry } from '../../auth/request/audit-sink.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { Db } from '../../db/engine/db.ts';
import { findBy, insert, remove, update } from '../../db/rows/repository.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { refuseUnknownNames, requireArguments } from '../../options/read-options.ts';
import { filledText, queryable } from '../../options/value-rule.ts';
import { SUSPENDED_REASON_MAX, suspensions } from './models.ts';
import type { BetterAuthSettings } from './options.ts';
import { serviceMembers } from './service-users.ts';
import { findMembership, findMemberships, type FoundMembership, lockOrganization, organizationsOf, suspendedAmong } from './store.ts';
import { betterAuthState } from './user-changes.ts';

/** What the statement that authenticated a session found in the organization that the request asked for. */
interface SessionMembership {
  readonly asked: string | null;
  /** Null: the user is not a member, or no organization was asked for and none is active. */
  readonly found: FoundMembership | null;
}

/** Principals of sessions belong to one request each. */
const ofSessions = new WeakMap<Principal, SessionMembership>();

export function rememberMembership(principal: Principal, membership: SessionMembership): void {
  ofSessions.set(principal, membership);
}

/**
 * Organizations as tenants, by id. The session's statement has proved the membership already; API keys and access tokens need one more.
 * A request that asks for an organization without the user in it is rejected.
 */
export function organizationTenants({ places, organization }: BetterAuthSettings): ModuleTenants {
  return tenantsOf({
    places: places ?? organization,
    managers: ['owner', 'admin'],
    async named({ db, principal, names }) {
      const known = ofSessions.get(principal);
      const found = await Promise.all(
        names.map(async (name) => {
          const isKnown = known !== undefined && name === (known.asked ?? principal.tenant);
          const member = isKnown ? known.found : await findMembership(db, principal.user.id, name);
          if (member === null) return [];
          return [[name, { tenant: member.organization, membership: membershipIn(member) }]] as const;
        }),
      );
      return new Map(found.flat());
    },
    async memberships(db, asked) {
      const found = await findMemberships(db, asked);
      return found.map((member) => (member === null ? null : membershipIn(member)));
    },
    suspended: suspendedAmong,
    ofUser: organizationsOf,
    serviceMembers,
  });
}

function membershipIn({ roles, isSuspended }: FoundMembership) {
  return { roles: rolesOf(roles), isSuspended };
}

/**
 * better-auth stores several roles as a comma list, and compares what is between the commas as it is. So do we: an administrator, who may not invite
 * owners, can invite with `member, owner`, where better-auth sees no owner.
 */
function rolesOf(list: string): readonly string[] {
  return list.split(',').filter((role) => role !== '');
}

/** Who suspends or resumes an organization, and why. */
export interface Suspension {
  /** For the audit entry. Default: none. */
  readonly reason?: string | undefined;
  /** For the audit entry. */
  readonly by?: AuditEntry['actor'];
  /** The id of the request, for the audit entry. */
  readonly requestId?: string | null | undefined;
}

const NAMES: ReadonlySet<string> = new Set(
  Object.keys({ reason: true, by: true, requestId: true } satisfies Record<keyof Suspension, true>),
);

/**
 * Nobody can work in the organization until `resumeTenant()`: requests and API keys get 403 `tenant_suspended`, streams end, deliveries of webhooks and jobs
 * wait, and better-auth's own routes do not change it. For programs and staff; suspending a suspended organization replaces the reason.
 */
export async function suspendTenant(db: Db, id: string, suspension: Suspension = {}): Promise<void> {
  checkArguments('suspendTenant()', db, id, suspension);
  const { reason = '' } = suspension;
  const given = reason.trim() === '' ? null : Array.from(reason.trim()).slice(0, SUSPENDED_REASON_MAX).join('');
  await changeSuspension(db, id, suspension, given);
}

/** Everything that waits goes on, within a minute. */
export async function resumeTenant(db: Db, id: string, suspension: Omit<Suspension, 'reason'> = {}): Promise<void> {
  checkArguments('resumeTenant()', db, id, suspension);
  await changeSuspension(db, id, suspension, undefined);
}

function checkArguments(place: string, db: Db, id: string, suspension: Suspension): void {
  refuseUnknownNames(place, suspension, NAMES);
  requireArguments(place, { db, id }, { db: queryable, id: filledText });
}

/** `reason`: undefined ends it. */
async function changeSuspension(db: Db, id: string, context: Suspension, reason: string | null | undefined): Promise<void> {
  const { registry } = betterAuthState.of(db);
  await db.transaction(async (tx) => {
    if (!(await lockOrganization(tx, id))) throw coreErrors.not_found({ detail: `There is no organization ${JSON.stringify(id)}.` });
    const before = await findBy(tx, suspensions, { organization_id: id });
    const isSame = reason === undefined ? before === undefined : before !== undefined && before.reason === reason;
    if (isSame) return;
    if (reason === undefined) await remove(tx, suspensions, id);
    else if (before === undefined) await insert(tx, suspensions, { organization_id: id, suspended_at: tx.clock.now(), reason });
    else await update(tx, suspensions, id, { reason });
    const type = reason === undefined ? 'tenant.resumed' : 'tenant.suspended';
    const facts = { before: before === undefined ? null : { reason: before.reason }, after: reason === undefined ? null : { reason } };
    const target = { target_type: 'tenant', target_id: id, tenant: id };
    const entry = { actor: context.by ?? null, action: type, ...target, ...facts, request_id: context.requestId ?? null };
    await registry.audit?.record(tx, [entry]);
    await registry.events?.publish(tx, [{ type, data: { id }, tenantKey: id }]);
  }, CONFLICT_RETRIES);
}
