import type { Principal, User } from '../../../auth/people/principal.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { invitationDigest, isInvitationToken } from '../declare/invitation-token.ts';
import { tenantsIn } from '../declare/tenants.ts';
import { tenantErrors } from '../errors.ts';
import { deleteInvitation, findInvitationByDigest, type InvitationRow, lockTenant, type MemberRow, type TenantRow } from '../rows/store.ts';
import { insertNewMember } from './members.ts';
import { recordInvitation } from './record-change.ts';
import { isGood } from './sender-rights.ts';

/** Who accepts: the caller, or a new user. */
export interface Acceptance {
  readonly token: string;
  readonly principal: Principal | null;
  /** Of a person without an account. */
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly requestId: string | null;
}

export interface AcceptedInvitation {
  readonly tenant: TenantRow;
  readonly member: MemberRow;
}

/**
 * Makes the caller a member, or a new user whose address is the one that the invitation was sent to: whoever has the token reads its mail. Of twenty
 * requests with one token, one succeeds. A password is hashed only for an invitation that is good, because that is slow.
 */
export async function acceptInvitation(db: Db, acceptance: Acceptance): Promise<AcceptedInvitation> {
  const { principal, requestId } = acceptance;
  const digest = isInvitationToken(acceptance.token) ? invitationDigest(acceptance.token) : '';
  const found = await openInvitation(db, digest);
  const userIn = principal === null ? await newUser(db, found, acceptance) : () => Promise.resolve(principal.user);
  return db.transaction(async (tx) => {
    const tenant = await lockTenant(tx, found.tenant_id);
    const invitation = await openInvitation(tx, digest);
    if (tenant === null || tenant.state !== 'active' || !(await isGood(tx, invitation))) throw tenantErrors.invalid_invitation();
    if (tenant.suspended_at !== null) throw coreErrors.tenant_suspended();
    const user = await userIn(tx);
    requireAddress(tx, invitation, user);
    await deleteInvitation(tx, invitation.id);
    const context = { by: principal ?? user, requestId };
    await recordInvitation(tx, 'accepted', invitation, context);
    const given = { user: user.id, roles: invitation.roles, addedBy: invitation.invited_by };
    return { tenant, member: await insertNewMember(tx, tenant, given, context) };
  }, CONFLICT_RETRIES);
}

async function openInvitation(db: Db, digest: string): Promise<InvitationRow> {
  const { clock } = tenantsIn(db);
  const found = digest === '' ? null : await findInvitationByDigest(db, digest);
  if (found === null || found.expires_at <= clock.now()) throw tenantErrors.invalid_invitation();
  return found;
}

async function newUser(
  db: Db,
  invitation: InvitationRow,
  { username, password, requestId }: Acceptance,
): Promise<(tx: Db) => Promise<User>> {
  const { registry, settings } = tenantsIn(db);
  const { registration } = registry;
  if (username === undefined || password === undefined) throw tenantErrors.registration_required();
  // Without a mail, whoever invites has seen the token: it proves no address.
  if (registration === null || settings.mail === null) throw tenantErrors.registration_closed();
  if (!(await isGood(db, invitation))) throw tenantErrors.invalid_invitation();
  return registration.prepare(db, { username, password, email: invitation.email }, { requestId });
}

function requireAddress(tx: Db, { email }: InvitationRow, user: User): void {
  if (!tenantsIn(tx).settings.anyAddress && user.email?.toLowerCase() !== email) throw tenantErrors.invitation_for_another_address();
}
