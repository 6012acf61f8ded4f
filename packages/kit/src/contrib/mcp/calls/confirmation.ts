import { createHmac, timingSafeEqual } from 'node:crypto';
import { canonicalJson } from '../../../db/values/canonical-json.ts';

/** A call that a person has to confirm. */
export interface ConfirmedCall {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** Who calls, and in which tenant: another caller's confirmation is none. */
  readonly caller: readonly unknown[];
}

/** How long a person may think about it. */
const VALID_MS = 5 * 60_000;

/** What a client sends back after its user has confirmed a call: for the same tool, arguments and caller, for five minutes. Nothing is stored. */
export function confirmationToken(call: ConfirmedCall, secret: Uint8Array, now: number): string {
  const expiry = (now + VALID_MS).toString(36);
  return `${expiry}.${signatureOf(call, expiry, secret).toString('base64url')}`;
}

export function isConfirmed(token: unknown, call: ConfirmedCall, secret: Uint8Array, now: number): boolean {
  const [, expiry, signature] = (typeof token === 'string' && /^([0-9a-z]{1,10})\.([\w-]{43})$/.exec(token)) || [];
  if (expiry === undefined || signature === undefined || Number.parseInt(expiry, 36) < now) return false;
  return timingSafeEqual(Buffer.from(signature, 'base64url'), signatureOf(call, expiry, secret));
}

/** Clients need not send members in the same order again. */
function signatureOf({ tool, arguments: given, caller }: ConfirmedCall, expiry: string, secret: Uint8Array): Buffer {
  return createHmac('sha256', secret)
    .update(canonicalJson([expiry, caller, tool, given]))
    .digest();
}
