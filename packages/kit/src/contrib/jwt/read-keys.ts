import { createPublicKey } from 'node:crypto';
import type { JSONWebKeySet, JWK } from 'jose';
import { isMembers } from '../../options/value-rule.ts';
import { type IssuerSettings, providerUrlFault } from './options.ts';

/** A discovery document has about 5 KB, a key set of Microsoft about 15 KB. */
const BODY_BYTES_MAX = 262_144;
const KEYS_MAX = 100;
/** RFC 7518, section 3.3. */
const RSA_BITS_MIN = 2048;
/** Of one request, from the first byte sent to the last byte read: a provider that answers slowly counts as down. */
const TIMEOUT_MS = 5000;

/** A provider that cannot be used. The message goes to the log and to `kit doctor`, never to a caller. */
export class ProviderFault extends Error {
  override readonly name = 'ProviderFault';
}

/** The public keys of an issuer, read from its provider. Two requests, or one with `jwksUri`. */
export async function readKeys({ issuer, jwksUri }: Pick<IssuerSettings, 'issuer' | 'jwksUri'>): Promise<JSONWebKeySet> {
  const url = jwksUri ?? (await discoveredKeysUrl(issuer));
  const set = await readJson(url);
  const listed: unknown = set['keys'];
  if (!Array.isArray(listed)) throw new ProviderFault(`${url} does not return a key set: "keys" is missing.`);
  if (listed.length > KEYS_MAX) throw new ProviderFault(`${url} returns ${listed.length} keys; at most ${KEYS_MAX} are accepted.`);
  const keys = listed.flatMap((key) => verificationKey(key) ?? []);
  // An empty list would end every login: it is more likely a mistake than the withdrawal of all keys.
  if (keys.length === 0) throw new ProviderFault(`${url} returns no usable public key for signatures. RSA keys need ${RSA_BITS_MIN} bits.`);
  return { keys };
}

async function discoveredKeysUrl(issuer: string): Promise<string> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const document = await readJson(url);
  if (document['issuer'] !== issuer)
    throw new ProviderFault(
      `${url} belongs to the issuer ${JSON.stringify(document['issuer'])}, not to ${JSON.stringify(issuer)}. Set \`issuer\` exactly as the provider spells it.`,
    );
  const found = document['jwks_uri'];
  const fault = providerUrlFault(found);
  if (fault !== null) throw new ProviderFault(`${url} has an unusable jwks_uri. ${fault}`);
  return found as string;
}

/**
 * The key with nothing but what verifies a signature; undefined where it cannot be used. A symmetric key has no place in a public set: a token signed
 * with it would be signed by anyone who can read the set. A key that cannot be imported would fail every request that names it, signed or not.
 */
function verificationKey(listed: unknown): JWK | undefined {
  if (typeof listed !== 'object' || listed === null) return undefined;
  const { kty, kid, alg, use, key_ops: operations, crv, x, y, n, e } = listed as JWK;
  if (kty !== 'RSA' && kty !== 'EC' && kty !== 'OKP') return undefined;
  if ((use !== undefined && use !== 'sig') || (operations !== undefined && !isVerifying(operations))) return undefined;
  const given = { kty, kid, alg, use, crv, x, y, n, e };
  const key = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as unknown as JWK;
  try {
    const { modulusLength } = createPublicKey({ key, format: 'jwk' }).asymmetricKeyDetails ?? {};
    return kty === 'RSA' && (modulusLength ?? 0) < RSA_BITS_MIN ? undefined : key;
  } catch {
    return undefined;
  }
}

function isVerifying(operations: unknown): boolean {
  return Array.isArray(operations) && operations.includes('verify');
}

async function readJson(url: string): Promise<Record<string, unknown>> {
  let response: Response;
  let body: string;
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    response = await fetch(url, { signal, redirect: 'error', headers: { accept: 'application/json' } });
    body = await limitedText(response, url);
  } catch (error) {
    if (error instanceof ProviderFault) throw error;
    const isLate = error instanceof DOMException && error.name === 'TimeoutError';
    throw new ProviderFault(isLate ? `${url} did not respond within ${TIMEOUT_MS} ms.` : `${url} cannot be read: ${reasonOf(error)}.`, {
      cause: error,
    });
  }
  if (!response.ok) throw new ProviderFault(`${url} responded with status ${response.status}.`);
  try {
    const value: unknown = JSON.parse(body);
    if (isMembers(value)) return value;
  } catch {
    // The sentence below is for this, too.
  }
  throw new ProviderFault(`${url} did not return a JSON object.`);
}

async function limitedText(response: Response, url: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > BODY_BYTES_MAX) throw new ProviderFault(`${url} returned more than ${BODY_BYTES_MAX} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Node says "fetch failed" and puts the reason into the cause. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return cause instanceof Error ? cause.message : String(cause);
}
