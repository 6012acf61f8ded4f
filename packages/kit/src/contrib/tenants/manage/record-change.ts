import type { AuditEntry } from '../../../auth/request/audit-sink.ts';
import type { Db } from '../../../db/engine/db.ts';
import { tenantsIn } from '../declare/tenants.ts';
import type { InvitationRow, MemberRow, TenantRow } from '../rows/store.ts';

/** Who makes a change, and in which request. */
export interface ChangeContext {
  /** For the audit entry. A principal is also asked for its rights in the tenant; programs and staff are not. */
  readonly by?: AuditEntry['actor'];
  /** The id of the request, for the audit entry. */
  readonly requestId?: string | null | undefined;
}

export const changeContextNames: Readonly<Record<keyof ChangeContext, true>> = { by: true, requestId: true };

interface Change {
  readonly action: string;
  readonly tenantId: string;
  readonly target: { readonly type: 'tenant' | 'tenant_member' | 'tenant_invitation'; readonly id: string };
  readonly before: object | null;
  readonly after: object | null;
  /** Published to the endpoints of the tenant; invitations are only recorded. */
  readonly event?: object;
}

/** Everything that follows from a change, in its transaction: the audit entry and the event. Without the module of either, that part is left out. */
async function recordChange(
  tx: Db,
  { action, tenantId, target, before, after, event }: Change,
  { by, requestId }: ChangeContext,
): Promise<void> {
  const { registry } = tenantsIn(tx);
  const entry = { actor: by ?? null, action, target_type: target.type, target_id: target.id, before, after, request_id: requestId ?? null };
  await registry.audit?.record(tx, [{ ...entry, tenant: tenantId }]);
  if (event !== undefined) await registry.events?.publish(tx, [{ type: action, data: event, tenantKey: tenantId }]);
}

export type TenantChange = 'created' | 'updated' | 'deletion_started' | 'restored' | 'deleted' | 'suspended' | 'resumed';

export async function recordTenant(
  tx: Db,
  change: TenantChange,
  { before, after }: { readonly before: TenantRow | null; readonly after: TenantRow | null },
  context: ChangeContext,
): Promise<void> {
  const { id, slug, name } = (after ?? before) as TenantRow;
  const facts = (row: TenantRow | null) =>
    row === null
      ? null
      : {
          slug: row.slug,
          name: row.name,
          state: row.state,
          deletes_at: row.deletes_at,
          suspended_at: row.suspended_at,
          suspended_reason: row.suspended_reason,
        };
  const target = { type: 'tenant', id } as const;
  await recordChange(
    tx,
    { action: `tenant.${change}`, tenantId: id, target, before: facts(before), after: facts(after), event: { id, slug, name } },
    context,
  );
}

/** `member.added`, `member.changed` or `member.removed`, whichever the roles mean. */
export async function recordMember(
  tx: Db,
  { before, after }: { readonly before: MemberRow | null; readonly after: MemberRow | null },
  context: ChangeContext,
): Promise<void> {
  const { id, tenant_id: tenantId, user_id, roles } = (after ?? before) as MemberRow;
  const action = before === null ? 'member.added' : after === null ? 'member.removed' : 'member.changed';
  const facts = (row: MemberRow | null) => (row === null ? null : { user_id: row.user_id, roles: row.roles });
  const target = { type: 'tenant_member', id } as const;
  const event = { id, tenant_id: tenantId, user_id, roles };
  await recordChange(tx, { action, tenantId, target, before: facts(before), after: facts(after), event }, context);
}

export async function recordInvitation(
  tx: Db,
  change: 'created' | 'sent_again' | 'revoked' | 'accepted',
  { id, tenant_id: tenantId, email, roles }: InvitationRow,
  context: ChangeContext,
): Promise<void> {
  const facts = { email, roles };
  const isGone = change === 'revoked' || change === 'accepted';
  const target = { type: 'tenant_invitation', id } as const;
  const action = `tenant_invitation.${change}`;
  await recordChange(tx, { action, tenantId, target, before: isGone ? facts : null, after: isGone ? null : facts }, context);
}
