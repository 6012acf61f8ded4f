import type { AuditEntry } from '../../../auth/request/audit-sink.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { accountsOf } from '../users/accounts.ts';
import { accountErrors } from '../errors.ts';
import { isKitError } from '../../../errors/kit-error.ts';
import { deleteExpiredLinks, findLinkUser, insertLink, type LinkPurpose, takeLink } from '../users/link-store.ts';
import { hashNewPassword, replaceEmail, replacePassword } from '../users/manage-users.ts';
import { isSessionToken, newSessionToken, sessionDigest } from '../sessions/session-token.ts';
import { findUserById, lockActiveUser, type UserRow } from '../users/store.ts';

const HOUR_MS = 3_600_000;
const LIFETIME_MS: Readonly<Record<LinkPurpose, number>> = { invitation: 7 * 24 * HOUR_MS, reset: HOUR_MS, email: 24 * HOUR_MS };

export interface NewLink {
  readonly id: string;
  /** 256 random bits; the database has only its digest. */
  readonly token: string;
  readonly expiresAt: Date;
}

/** A link for one use. Earlier links of the user stay good until one is used: a mail may overtake another. */
export async function createLink(
  db: Db,
  user: Pick<UserRow, 'id'>,
  purpose: LinkPurpose,
  { email = null, invitedBy = null }: { readonly email?: string | null; readonly invitedBy?: string | null } = {},
): Promise<NewLink> {
  const { clock } = accountsOf(db);
  const now = clock.now();
  const [id, token, expiresAt] = [uuidv7(clock), newSessionToken(), new Date(now.getTime() + LIFETIME_MS[purpose])];
  await deleteExpiredLinks(db, now);
  const stored = { id, user_id: user.id, purpose, email, token_digest: sessionDigest(token), invited_by: invitedBy };
  await insertLink(db, { ...stored, created_at: now, expires_at: expiresAt });
  return { id, token, expiresAt };
}

/**
 * Sets the password of the user that the link was sent to. The link, the user's other links and all sessions end in the same transaction: of
 * twenty requests with one link, one succeeds. The password is hashed only for a link that is good, because that is slow.
 */
export async function useLink(
  db: Db,
  purpose: 'invitation' | 'reset',
  token: string,
  password: string,
  change: { readonly requestId: string | null },
): Promise<UserRow> {
  const accounts = accountsOf(db);
  const { clock, settings } = accounts;
  const digest = sessionDigest(token);
  const known = isSessionToken(token) ? await findLinkUser(db, purpose, digest, clock.now()) : null;
  const owner = known === null ? null : await findUserById(db, known);
  if (owner === null || !owner.is_active) throw accountErrors.invalid_link();
  const hash = await hashNewPassword(password, owner, settings.passwordCost);
  return db.transaction(async (tx) => {
    // Locked first, as a change of the password does: neither waits for what the other holds.
    const user = await lockActiveUser(tx, owner.id);
    if (user === null || (await takeLink(tx, purpose, digest, clock.now())) === null) throw accountErrors.invalid_link();
    const actor: AuditEntry['actor'] = `${purpose} link`;
    return replacePassword(tx, user.id, hash, accounts.management(actor, change.requestId));
  }, CONFLICT_RETRIES);
}

/**
 * Gives the user the address that the link was sent to: whoever has the link reads its mail. 410, too, when another user has the address by
 * now: the answer does not tell whose it is.
 */
export async function useEmailLink(db: Db, token: string, change: { readonly requestId: string | null }): Promise<UserRow> {
  const accounts = accountsOf(db);
  const { clock } = accounts;
  const digest = sessionDigest(token);
  const known = isSessionToken(token) ? await findLinkUser(db, 'email', digest, clock.now()) : null;
  if (known === null) throw accountErrors.invalid_link();
  try {
    return await db.transaction(async (tx) => {
      const user = await lockActiveUser(tx, known);
      const link = user === null ? null : await takeLink(tx, 'email', digest, clock.now());
      if (user === null || link === null || link.email === null) throw accountErrors.invalid_link();
      return replaceEmail(tx, user, link.email, accounts.management('email link', change.requestId));
    }, CONFLICT_RETRIES);
  } catch (error) {
    if (isKitError(error, 'email_taken')) throw accountErrors.invalid_link();
    throw error;
  }
}
