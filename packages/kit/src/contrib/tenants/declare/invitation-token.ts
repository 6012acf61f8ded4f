import { createHash, randomBytes } from 'node:crypto';

/** 256 random bits: nobody guesses one, so its hash needs no salt. */
export function newInvitationToken(): string {
  return randomBytes(32).toString('base64url');
}

export function isInvitationToken(token: string): boolean {
  return /^[\w-]{43}$/.test(token);
}

/** What the database has of a token. */
export function invitationDigest(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
