import { hasRole, type PermissionContext } from 'kit';
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
  readonly roles: readonly Role[];
}

/** What a user is in an organization, for `createApp({ membership })`: asked once per request, and by workers before they send anything to the user. */
export async function findMembership(db: Db, userId: string, organization: string): Promise<Membership | null> {
  const [found] = await db.query<{ role: Role }>('select role from memberships where user_id = $1 and organization_id = $2', [
    userId,
    organization,
  ]);
  return found === undefined ? null : { roles: [found.role] };
}

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;

/** The organization that the header `X-Organization` names, for `createApp({ tenant })`. It counts once the membership is found. */
export function organizationOf({ headers }: PermissionContext): string | null {
  const asked = headers['x-organization'];
  return typeof asked === 'string' && UUID.test(asked) ? asked : null;
}

/** Holds for agents of the organization that the request is about. */
export const isAgent = hasRole('agent');
