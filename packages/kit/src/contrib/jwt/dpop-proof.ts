import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { calculateJwkThumbprint, EmbeddedJWK, type JWK, jwtVerify, type JWTPayload } from 'jose';
import type { AuthenticatorHost, AuthRequest } from '../../auth/request/authenticator.ts';
import { isKitError } from '../../errors/kit-error.ts';
import { PROOF_ALGORITHMS, refused } from './refusal.ts';

/** A proof has a public key and a signature: of RSA about 1,500 characters. */
const PROOF_LENGTH_MAX = 8_192;
/** How old a proof may be, beside the difference of the clocks. */
const AGE_MS_MAX = 60_000;
/** How long a nonce is accepted. */
const NONCE_MS = 300_000;
const JTI_LENGTH_MAX = 256;

/** What a proof has to fit. */
export interface Proved {
  readonly token: string;
  /** `cnf.jkt` of the token. */
  readonly thumbprint: unknown;
  readonly clockToleranceMs: number;
  readonly needsNonce: boolean;
}

/** RFC 9449, 4.3: the client has the key of its token, and made the proof for this request, now and once. Throws 401. */
export async function verifyProof(
  { method, url, headers }: AuthRequest,
  { token, thumbprint, clockToleranceMs, needsNonce }: Proved,
  host: Pick<AuthenticatorHost, 'clock' | 'firstUse' | 'secret' | 'servers'>,
): Promise<void> {
  const proof = headers['dpop'];
  // Two headers are joined by Node: that is no token.
  if (typeof proof !== 'string' || proof.length > PROOF_LENGTH_MAX) throw refused('proof');
  const now = host.clock.now();
  const { payload, jwk } = await signed(proof, now);
  if ((await calculateJwkThumbprint(jwk)) !== thumbprint) throw refused('proof');
  const { htm, htu, ath, jti, iat, nonce } = payload as JWTPayload & Readonly<Record<'htm' | 'htu' | 'ath' | 'nonce', unknown>>;
  if (htm !== method || !isAddress(htu, url, host.servers)) throw refused('proof');
  if (ath !== createHash('sha256').update(token).digest('base64url')) throw refused('proof');
  const issuedMs = typeof iat === 'number' ? iat * 1000 : Number.NaN;
  const ageMs = now.getTime() - issuedMs;
  // Also false for an age that is no number.
  if (!(ageMs <= AGE_MS_MAX + clockToleranceMs && ageMs >= -clockToleranceMs)) throw refused('proof');
  if (typeof jti !== 'string' || jti === '' || jti.length > JTI_LENGTH_MAX) throw refused('proof');
  if (needsNonce) await requireNonce(nonce, await host.secret('jwt_dpop_nonces'), now.getTime());
  const key = createHash('sha256')
    .update(JSON.stringify([thumbprint, jti]))
    .digest('base64url');
  if (!(await host.firstUse(`dpop:${key}`, AGE_MS_MAX + 2 * clockToleranceMs))) throw refused('replayed');
}

async function signed(proof: string, currentDate: Date): Promise<{ readonly payload: JWTPayload; readonly jwk: JWK }> {
  try {
    const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, {
      typ: 'dpop+jwt',
      algorithms: [...PROOF_ALGORITHMS],
      currentDate,
    });
    return { payload, jwk: protectedHeader.jwk as JWK };
  } catch (error) {
    // Its key may be anything that a client writes.
    if (isKitError(error)) throw error;
    throw refused('proof');
  }
}

/** The address of the request as clients know it, whatever a proxy has made of it. Query and fragment do not count. */
function isAddress(htu: unknown, url: string, servers: readonly string[]): boolean {
  const given = typeof htu === 'string' ? URL.parse(htu) : null;
  if (given === null) return false;
  return servers.some((server) => {
    const { origin, pathname } = new URL(server);
    const asked = URL.parse(`${origin}${pathname.replace(/\/$/, '')}${url}`);
    return asked !== null && asked.origin === given.origin && asked.pathname === given.pathname;
  });
}

/** Nothing is stored: a nonce says by itself until when it holds. */
async function requireNonce(given: unknown, secret: Uint8Array, nowMs: number): Promise<void> {
  const [, until, mark] = (typeof given === 'string' && /^([0-9a-z]{1,10})\.([\w-]{43})$/.exec(given)) || [];
  const isOurs = until !== undefined && mark !== undefined && timingSafeEqual(Buffer.from(mark, 'base64url'), markOf(until, secret));
  if (isOurs && Number.parseInt(until, 36) >= nowMs) return;
  const next = (nowMs + NONCE_MS).toString(36);
  throw refused('nonce', { 'dpop-nonce': `${next}.${markOf(next, secret).toString('base64url')}`, 'cache-control': 'no-store' });
}

function markOf(until: string, secret: Uint8Array): Buffer {
  return createHmac('sha256', secret).update(until).digest();
}
