import { APIError, type createAuthMiddleware } from 'better-auth/api';
import type { Db } from '../../db/engine/db.ts';
import { isActiveUser, suspendedAmong, takeOverInvitation } from './store.ts';

type Endpoint = Parameters<Parameters<typeof createAuthMiddleware>[0]>[0];

interface Invitation {
  readonly id: string;
  readonly organizationId: string;
  readonly inviterId: string;
  /** A comma list. */
  readonly role: string | null;
}

interface OrganizationOptions {
  readonly creatorRole?: string;
}

/**
 * better-auth shows no invitation whose sender has left the organization, and still lets it be accepted: an administrator could invite another address
 * of their own and return after being removed. An invitation is good while its sender could send it.
 */
export async function refuseOrphanedInvitation(db: Db, endpoint: Endpoint): Promise<void> {
  const invitation = await pendingInvitation(endpoint, (endpoint.body as { readonly invitationId?: unknown } | undefined)?.invitationId);
  if (invitation === null || (await couldSend(db, endpoint, invitation))) return;
  throw new APIError('FORBIDDEN', {
    code: 'INVITER_NO_LONGER_ALLOWED',
    message: 'The person who sent this invitation may no longer invite to this organization. Ask an administrator to send it again.',
  });
}

/** Sent again by somebody who may, an invitation is theirs: it was good for nothing before. */
export async function takeOverOrphanedInvitation(db: Db, endpoint: Endpoint, senderId: string): Promise<void> {
  const returned = endpoint.context.returned as { readonly id?: unknown } | undefined;
  const invitation = await pendingInvitation(endpoint, returned?.id);
  if (invitation === null || invitation.inviterId === senderId || (await couldSend(db, endpoint, invitation))) return;
  await takeOverInvitation(db, invitation.id, senderId);
}

/** What changes nothing in an organization, or ends what somebody has in it: allowed while it is suspended. */
const WHILE_SUSPENDED: ReadonlySet<string> = new Set(
  ['create', 'check-slug', 'set-active', 'set-active-team', 'has-permission', 'leave', 'delete', 'reject-invitation'].map(
    (name) => `/organization/${name}`,
  ),
);

/** Members and invitations of a suspended organization stay as they are: an invitation is still good afterwards. */
export async function refuseWhileSuspended(db: Db, endpoint: Endpoint, active: string | null): Promise<void> {
  if (endpoint.method === 'GET' || WHILE_SUSPENDED.has(endpoint.path)) return;
  const { organizationId, data, invitationId } = (endpoint.body ?? {}) as Named;
  const ofInvitation = (await pendingInvitation(endpoint, invitationId))?.organizationId;
  const named = [organizationId, data?.organizationId, ofInvitation].filter((id): id is string => typeof id === 'string' && id !== '');
  const asked = named.length === 0 && active !== null ? [active] : named;
  if (asked.length === 0 || (await suspendedAmong(db, asked)).size === 0) return;
  throw new APIError('FORBIDDEN', { code: 'TENANT_SUSPENDED', message: 'The organization is suspended. Ask its provider why.' });
}

/** Where the routes of better-auth name an organization; without a name it is the active one of the session. */
interface Named {
  readonly organizationId?: unknown;
  readonly data?: { readonly organizationId?: unknown };
  readonly invitationId?: unknown;
}

async function pendingInvitation({ context }: Endpoint, id: unknown): Promise<Invitation | null> {
  if (typeof id !== 'string') return null;
  const where = [
    { field: 'id', value: id },
    { field: 'status', value: 'pending' },
  ];
  return context.adapter.findOne<Invitation>({ model: 'invitation', where });
}

/** By the rules of better-auth's own route: the permission to invite, and only who has the creator's role gives it. */
async function couldSend(db: Db, endpoint: Endpoint, { organizationId, inviterId, role }: Invitation): Promise<boolean> {
  if (!(await isActiveUser(db, inviterId))) return false;
  const where = [
    { field: 'organizationId', value: organizationId },
    { field: 'userId', value: inviterId },
  ];
  const member = await endpoint.context.adapter.findOne<{ readonly role: string }>({ model: 'member', where });
  if (member === null) return false;
  const options = (endpoint.context.getPlugin('organization')?.options ?? {}) as OrganizationOptions;
  const { hasPermission } = await import('better-auth/plugins/organization');
  const asked = { role: member.role, options: options as object, permissions: { invitation: ['create' as const] }, organizationId };
  if (!(await hasPermission(asked, endpoint))) return false;
  const { creatorRole = 'owner' } = options;
  return !namesOf(role ?? '').includes(creatorRole) || namesOf(member.role).includes(creatorRole);
}

function namesOf(list: string): readonly string[] {
  return list.split(',').map((name) => name.trim());
}
