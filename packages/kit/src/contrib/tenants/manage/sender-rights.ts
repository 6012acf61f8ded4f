import type { Db } from '../../../db/engine/db.ts';
import { canInvite } from '../declare/roles.ts';
import { tenantsIn } from '../declare/tenants.ts';
import { findMember, type InvitationRow } from '../rows/store.ts';

/** An invitation is good while its sender could send it: an active user and a member whose roles allow it. Programs and staff always can. */
export async function isGood(tx: Db, { invited_by: sender, tenant_id: tenantId, roles }: InvitationRow): Promise<boolean> {
  if (sender === null) return true;
  const { registry, settings } = tenantsIn(tx);
  const [standing] = await registry.standings.of(tx, [{ userId: sender, tenant: null }]);
  const member = standing?.ok === true ? await findMember(tx, tenantId, sender) : null;
  return member !== null && canInvite(settings.roles, member.roles, roles);
}
