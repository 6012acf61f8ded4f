import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { refuseUnknownNames, requireArguments } from '../../../options/read-options.ts';
import { anObject, queryable } from '../../../options/value-rule.ts';
import { invitationDigest, newInvitationToken } from '../declare/invitation-token.ts';
import { orderedRoles } from '../declare/roles.ts';
import { tenantsIn } from '../declare/tenants.ts';
import { tenantErrors } from '../errors.ts';
import {
  countInvitations,
  countMembers,
  deleteExpiredInvitations,
  deleteInvitation,
  findInvitation,
  findInvitationTo,
  insertInvitation,
  type InvitationRow,
  updateInvitation,
} from '../rows/store.ts';
import { invalidRoles, lockedFor, requireChange, requireManager } from './actor.ts';
import { changeContextNames, type ChangeContext, recordInvitation } from './record-change.ts';
import { requireSeat } from './seats.ts';
import { startInvitationMail } from './send-invitation.ts';

export interface NewInvitation extends ChangeContext {
  /** The id of the tenant. */
  readonly tenant: string;
  /** Whom to invite. */
  readonly email: string;
  /** Roles of the module's `roles`. */
  readonly roles: readonly string[];
}

/** An invitation, and its token where no mail takes it to the person. */
export interface SentInvitation {
  readonly invitation: InvitationRow;
  /** Shown now and never again: only a digest of it is stored. Null: a mail is sent. */
  readonly token: string | null;
}

interface AsStaff {
  /** True: a member of staff in the admin site, who needs no role in the tenant. */
  readonly asStaff?: boolean;
}

const NEW: ReadonlySet<string> = new Set(
  Object.keys({ ...changeContextNames, tenant: true, email: true, roles: true } satisfies Record<keyof NewInvitation, true>),
);

/** Invites an address. The invitation ends with the rights of its sender. */
export async function inviteMember(db: Db, input: NewInvitation & AsStaff): Promise<SentInvitation> {
  requireArguments('inviteMember()', { db, input }, { db: queryable, input: anObject });
  const { asStaff = false, ...given } = input;
  refuseUnknownNames('inviteMember()', given, NEW);
  const { clock, settings } = tenantsIn(db);
  const email = checkedAddress(given.email);
  const roles = orderedRoles(settings.roles, given.roles);
  if (roles === undefined) throw invalidRoles(settings.roles.all);
  return db.transaction(async (tx) => {
    const { tenant, actor } = await lockedFor(tx, given.tenant, given.by, { asStaff });
    await requireChange(tx, tenant.id, '', { actor: actor.roles, isSelf: false, before: null, after: roles });
    const now = clock.now();
    await deleteExpiredInvitations(tx, tenant.id, now);
    if ((await findInvitationTo(tx, tenant.id, email)) !== null) throw tenantErrors.already_invited();
    const open = await countInvitations(tx, tenant.id, now);
    if (open >= settings.invitationsMax)
      throw tenantErrors.seats_taken({
        detail: `The tenant has ${open} open invitations already.`,
        extensions: { seats_max: settings.invitationsMax },
      });
    await requireSeat(tx, tenant, (await countMembers(tx, tenant.id)) + open);
    const token = settings.mail === null ? newInvitationToken() : null;
    const invitation = await insertInvitation(tx, {
      id: uuidv7(clock),
      tenant_id: tenant.id,
      email,
      roles: [...roles],
      token_digest: token === null ? null : invitationDigest(token),
      created_at: now,
      expires_at: new Date(now.getTime() + settings.invitationLifetimeMs),
      invited_by: actor.userId,
    });
    await recordInvitation(tx, 'created', invitation, given);
    if (token === null) await startInvitationMail(tx, invitation);
    return { invitation, token };
  }, CONFLICT_RETRIES);
}

/** A new token and the whole lifetime again: the token from before stops working. The invitation is then that of who sends it. */
export async function resendInvitation(
  db: Db,
  id: string,
  { asStaff = false, ...context }: ChangeContext & AsStaff,
): Promise<SentInvitation> {
  const { clock, settings } = tenantsIn(db);
  return db.transaction(async (tx) => {
    const { before, actor } = await lockedInvitation(tx, id, context, asStaff);
    await requireChange(tx, before.tenant_id, '', { actor: actor.roles, isSelf: false, before: null, after: before.roles });
    const token = settings.mail === null ? newInvitationToken() : null;
    const invitation = await updateInvitation(tx, before.id, {
      token_digest: token === null ? null : invitationDigest(token),
      expires_at: new Date(clock.now().getTime() + settings.invitationLifetimeMs),
      invited_by: actor.userId,
    });
    if (invitation === null) throw tenantErrors.invitation_not_found();
    await recordInvitation(tx, 'sent_again', invitation, context);
    if (token === null) await startInvitationMail(tx, invitation);
    return { invitation, token };
  }, CONFLICT_RETRIES);
}

/** The invitation can no longer be accepted. */
export async function revokeInvitation(db: Db, id: string, { asStaff = false, ...context }: ChangeContext & AsStaff): Promise<void> {
  await db.transaction(async (tx) => {
    const { before, actor } = await lockedInvitation(tx, id, context, asStaff);
    requireManager(tx, actor);
    await deleteInvitation(tx, before.id);
    await recordInvitation(tx, 'revoked', before, context);
  }, CONFLICT_RETRIES);
}

/** The invitation as it is once its tenant is locked. */
async function lockedInvitation(tx: Db, id: string, { by }: ChangeContext, asStaff: boolean) {
  const found = await findInvitation(tx, id);
  if (found === null) throw tenantErrors.invitation_not_found();
  const { actor } = await lockedFor(tx, found.tenant_id, by, { asStaff });
  const before = await findInvitation(tx, id);
  if (before === null) throw tenantErrors.invitation_not_found();
  return { before, actor };
}

/** In lower case, as users' addresses are compared. */
function checkedAddress(given: unknown): string {
  const email = typeof given === 'string' ? given.trim().toLowerCase() : '';
  if (email.length <= 254 && /^[^\s@\p{Cc}]+@[^\s@\p{Cc}]+$/u.test(email)) return email;
  throw coreErrors.validation_error({ errors: [{ location: ['body', 'email'], code: 'invalid', message: 'Send an e-mail address.' }] });
}
