import { hasRule, type PermissionContext } from 'kit';
import { model, t, timestamps, type Db } from 'kit/db';

/** A customer of the helpdesk: the tenant. */
export const organizations = model('organizations', { id: t.uuidv7().pk(), name: t.text(120), ...timestamps() });

export const ROLES = ['member', 'agent'] as const;
export type Role = (typeof ROLES)[number];

/** Who belongs to an organization. Members write tickets; agents see all of them and solve them. */
export const memberships = model(
  'memberships',
  { id: t.uuidv7().pk(), organization_id: t.ref(() => organizations), user_id: t.uuid(), role: t.enum(ROLES), ...timestamps() },
  { indexes: [{ columns: ['user_id', 'organization_id'], unique: true }] },
);

export interface Membership {
  readonly organization: string;
  readonly role: Role;
}

export async function findMembership(db: Db, userId: string, organization: string): Promise<Membership | null> {
  const [found] = await db.query<{ role: Role }>('select role from memberships where user_id = $1 and organization_id = $2', [
    userId,
    organization,
  ]);
  return found === undefined ? null : { organization, role: found.role };
}

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;
const known = new WeakMap<object, Promise<Membership | null>>();

/** The caller's membership in the organization that the header `X-Organization` names: one statement per request, for tenant and role. */
function membershipOf(request: PermissionContext): Promise<Membership | null> {
  const { user, headers, db } = request;
  const asked = headers['x-organization'];
  if (user === null || typeof asked !== 'string' || !UUID.test(asked)) return Promise.resolve(null);
  const found = known.get(request) ?? findMembership(db, user.id, asked);
  known.set(request, found);
  return found;
}

/** The tenant of a request, for `createApp({ tenant })`. A caller who does not belong to the organization has none. */
export async function tenantOf(request: PermissionContext): Promise<string | null> {
  return (await membershipOf(request))?.organization ?? null;
}

/** Holds for agents of the organization that the request is about. */
export const isAgent = hasRule(async function isAgent(request) {
  return (await membershipOf(request))?.role === 'agent';
});
