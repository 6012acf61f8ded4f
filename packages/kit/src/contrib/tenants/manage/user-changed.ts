import type { UserChangeListener } from '../../../app/declare/registry.ts';
import type { Db } from '../../../db/engine/db.ts';
import { tenantsIn, tenantsState } from '../declare/tenants.ts';
import { deleteInvitation, findMember, invitationsBy, lockTenant, membershipsOf } from '../rows/store.ts';
import { removeRow } from './members.ts';
import { type ChangeContext, recordInvitation } from './record-change.ts';

/** A deleted user is in no tenant any more; invitations of a user who cannot act end. */
export const userChanged: UserChangeListener = async (tx, userId, change) => {
  // A program that opens the database without the app.
  if (tenantsState.find(tx) === undefined) return;
  const context: ChangeContext = { by: change?.by ?? null, requestId: change?.requestId ?? null };
  const { registry } = tenantsIn(tx);
  const [standing] = await registry.standings.of(tx, [{ userId, tenant: null }]);
  if (standing === undefined || standing.ok) return;
  if (standing.why !== 'inactive') await leaveAll(tx, userId, context);
  for (const invitation of await invitationsBy(tx, userId)) {
    await deleteInvitation(tx, invitation.id);
    await recordInvitation(tx, 'revoked', invitation, context);
  }
};

async function leaveAll(tx: Db, userId: string, context: ChangeContext): Promise<void> {
  const memberships = await membershipsOf(tx, userId);
  // In one order: two users who are deleted together do not wait for each other.
  for (const { tenant_id: tenantId } of memberships.toSorted((a, b) => (a.tenant_id < b.tenant_id ? -1 : 1))) {
    await lockTenant(tx, tenantId);
    const member = await findMember(tx, tenantId, userId);
    if (member !== null) await removeRow(tx, member, context);
  }
}
