import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { findBy } from '../../../db/rows/repository.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { job } from '../../jobs/declare/job.ts';
import { startJob } from '../../jobs/start/start-job.ts';
import { invitationDigest, newInvitationToken } from '../declare/invitation-token.ts';
import { tenantsIn } from '../declare/tenants.ts';
import { tenants } from '../models.ts';
import type { InvitationMail } from '../options.ts';
import { findInvitation, type InvitationRow, lockTenant, updateInvitation } from '../rows/store.ts';
import { isGood } from './sender-rights.ts';

interface InvitationInput {
  readonly invitation: string;
}

/**
 * Sends the link of an invitation. The token is made here and not by the request: it is then in no table, not even in the input of this job. Ten attempts
 * over about eight hours.
 */
export const sendInvitation = job('tenants.send_invitation', {
  input: jsonSchema<InvitationInput>({
    type: 'object',
    properties: { invitation: { type: 'string', maxLength: 36 } },
    required: ['invitation'],
    additionalProperties: false,
  }),
  retry: { attempts: 10, firstDelaySeconds: 10, delaySecondsMax: 7200 },
  timeoutMs: 60_000,
  async run({ db, input, signal }) {
    const { mail } = tenantsIn(db).settings;
    const due = mail === null ? null : await db.transaction((tx) => dueMail(tx, input.invitation), CONFLICT_RETRIES);
    if (mail === null || due === null) return;
    const { subject, text } = mail.compose?.(due) ?? defaultMail(due);
    await mail.send({ to: due.email, subject, text }, { signal });
  },
});

/** In the caller's transaction: no mail for what was rolled back, and none is lost. While the tenant is suspended or being deleted, it waits. */
export async function startInvitationMail(tx: Db, { id, tenant_id: tenantKey }: InvitationRow): Promise<void> {
  await startJob(tx, sendInvitation, { invitation: id }, { tenantKey });
}

/** Null where the invitation was revoked or has expired, or its sender can no longer invite. */
async function dueMail(tx: Db, id: string): Promise<InvitationMail | null> {
  const { clock, settings, title, users } = tenantsIn(tx);
  const found = await findInvitation(tx, id);
  if (found === null || (await lockTenant(tx, found.tenant_id)) === null) return null;
  const invitation = await findInvitation(tx, id);
  if (invitation === null || invitation.expires_at <= clock.now() || !(await isGood(tx, invitation))) return null;
  const tenant = await findBy(tx, tenants, { id: invitation.tenant_id });
  if (tenant === undefined || settings.mail === null) return null;
  const token = newInvitationToken();
  await updateInvitation(tx, id, { token_digest: invitationDigest(token) });
  const sender = invitation.invited_by === null ? null : await users.findById(tx, invitation.invited_by);
  return {
    tenant: { id: tenant.id, slug: tenant.slug, name: tenant.name },
    email: invitation.email,
    roles: invitation.roles,
    link: `${settings.mail.linkUrl}#tenant-invitation=${token}`,
    expiresAt: invitation.expires_at,
    invitedBy: sender?.username ?? null,
    title,
  };
}

export function defaultMail({ tenant, link, expiresAt, invitedBy, title }: InvitationMail): {
  readonly subject: string;
  readonly text: string;
} {
  const until = `The link can be used once, until ${expiresAt.toISOString().slice(0, 16).replace('T', ' ')} UTC.`;
  const sender = invitedBy === null ? 'You are invited' : `${invitedBy} invites you`;
  return {
    subject: `Join ${tenant.name} at ${title}`,
    text: `${sender} to join ${tenant.name} at ${title}.\n\nAccept the invitation here:\n${link}\n\n${until} If you did not expect it, ignore this mail.\n`,
  };
}
