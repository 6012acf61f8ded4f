import { createHash, createHmac } from 'node:crypto';

// Verifies SigV4 as a store does, from the request as it arrived. Written from AWS's description and without the uploads module's signer, so that
// the two cannot share a mistake.

export interface SignedRequest {
  readonly method: string;
  /** As it arrived, encoded: `/bucket/a%20b?x=y`. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

export interface KnownKey {
  /** The id of the access key that requests must be signed with. */
  readonly accessKeyId: string;
  /** The secret of the access key. */
  readonly secretAccessKey: string;
  /** Required of every request when set. */
  readonly sessionToken?: string;
}

export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

const SKEW_MS = 15 * 60_000;
const refusal = (status: number, code: string, message: string): Refusal => ({ status, code, message });
const mismatch = refusal(403, 'SignatureDoesNotMatch', 'The request signature we calculated does not match the signature you provided.');

/** Null when the request is signed by the key, for this region, and not expired. */
export function refuseSignature(request: SignedRequest, key: KnownKey, region: string, now: Date): Refusal | null {
  const query = parameters(request.target);
  const algorithm = query.find(([name]) => name === 'X-Amz-Algorithm');
  if (algorithm !== undefined) return refusePresigned(request, query, key, region, now);
  const header = request.headers['authorization'];
  if (header === undefined) return refusal(403, 'AccessDenied', 'Anonymous access is not allowed.');
  return refuseHeader(request, header, query, key, region, now);
}

function refusePresigned(request: SignedRequest, query: readonly Parameter[], key: KnownKey, region: string, now: Date): Refusal | null {
  const value = (name: string) => query.find(([each]) => each === name)?.[1] ?? '';
  const expires = Number(value('X-Amz-Expires'));
  if (!Number.isInteger(expires) || expires < 1 || expires > 604_800)
    return refusal(400, 'AuthorizationQueryParametersError', 'X-Amz-Expires must be between 1 and 604800.');
  const signedAt = instant(value('X-Amz-Date'));
  if (signedAt === null) return refusal(400, 'AuthorizationQueryParametersError', 'X-Amz-Date is not a date.');
  const scope = scopeOf(value('X-Amz-Credential'), value('X-Amz-Date'), key, region);
  if (typeof scope !== 'string') return scope;
  if ((key.sessionToken ?? '') !== value('X-Amz-Security-Token'))
    return refusal(403, 'InvalidToken', 'The provided token is malformed or otherwise invalid.');
  const unsigned = query.filter(([name]) => name !== 'X-Amz-Signature');
  const names = value('X-Amz-SignedHeaders').split(';');
  const missing = unsignedHeader(request, names);
  if (missing !== null) return missing;
  const expected = signature(request, { query: unsigned, names, payload: 'UNSIGNED-PAYLOAD', date: value('X-Amz-Date'), scope, key });
  if (expected !== value('X-Amz-Signature')) return mismatch;
  if (now.getTime() > signedAt + expires * 1000) return refusal(403, 'AccessDenied', 'Request has expired');
  return signedAt > now.getTime() + SKEW_MS ? refusal(403, 'AccessDenied', 'Request is not yet valid') : null;
}

function refuseHeader(
  request: SignedRequest,
  header: string,
  query: readonly Parameter[],
  key: KnownKey,
  region: string,
  now: Date,
): Refusal | null {
  const [, credential = '', list = '', given = ''] =
    /^AWS4-HMAC-SHA256 Credential=([^,\s]+),\s*SignedHeaders=([^,\s]+),\s*Signature=([0-9a-f]{64})$/.exec(header) ?? [];
  if (given === '') return refusal(400, 'AuthorizationHeaderMalformed', 'The authorization header is malformed.');
  const date = request.headers['x-amz-date'] ?? '';
  const signedAt = instant(date);
  if (signedAt === null || Math.abs(signedAt - now.getTime()) > SKEW_MS)
    return refusal(403, 'RequestTimeTooSkewed', 'The difference between the request time and the current time is too large.');
  const payload = request.headers['x-amz-content-sha256'];
  if (payload === undefined) return refusal(400, 'InvalidRequest', 'Missing required header for this request: x-amz-content-sha256');
  const scope = scopeOf(credential, date, key, region);
  if (typeof scope !== 'string') return scope;
  if ((key.sessionToken ?? '') !== (request.headers['x-amz-security-token'] ?? ''))
    return refusal(403, 'InvalidToken', 'The provided token is malformed or otherwise invalid.');
  const names = list.split(';');
  const missing = unsignedHeader(request, names);
  if (missing !== null) return missing;
  return signature(request, { query, names, payload, date, scope, key }) === given ? null : mismatch;
}

/** Headers of AWS's own, and the host, must be part of what is signed. */
function unsignedHeader({ headers }: SignedRequest, names: readonly string[]): Refusal | null {
  const needed = ['host', ...Object.keys(headers).filter((name) => name.startsWith('x-amz-'))];
  const missing = needed.find((name) => !names.includes(name));
  return missing === undefined
    ? null
    : refusal(403, 'AccessDenied', `There were headers present in the request which were not signed: ${missing}`);
}

function scopeOf(credential: string, date: string, key: KnownKey, region: string): string | Refusal {
  const [accessKeyId, ...scope] = credential.split('/');
  if (accessKeyId !== key.accessKeyId)
    return refusal(403, 'InvalidAccessKeyId', 'The access key Id you provided does not exist in our records.');
  if (scope.join('/') !== `${date.slice(0, 8)}/${region}/s3/aws4_request`)
    return refusal(400, 'AuthorizationHeaderMalformed', `The credential is scoped wrongly; expecting ${region}.`);
  return scope.join('/');
}

interface SignedParts {
  readonly query: readonly Parameter[];
  readonly names: readonly string[];
  readonly payload: string;
  readonly date: string;
  readonly scope: string;
  readonly key: KnownKey;
}

function signature(request: SignedRequest, { query, names, payload, date, scope, key }: SignedParts): string {
  const lines = [request.method, canonicalPath(request.target), canonicalQuery(query)];
  for (const name of names.toSorted()) lines.push(`${name}:${(request.headers[name] ?? '').trim().split(/\s+/).join(' ')}`);
  lines.push('', names.toSorted().join(';'), payload);
  const hash = createHash('sha256').update(lines.join('\n')).digest('hex');
  return createHmac('sha256', signingKey(key.secretAccessKey, scope)).update(`AWS4-HMAC-SHA256\n${date}\n${scope}\n${hash}`).digest('hex');
}

/** A POST form is signed over its policy. */
export function policySignatureMatches(policy: string, given: string, credential: string, key: KnownKey): boolean {
  const [accessKeyId, ...scope] = credential.split('/');
  return (
    accessKeyId === key.accessKeyId &&
    createHmac('sha256', signingKey(key.secretAccessKey, scope.join('/')))
      .update(policy)
      .digest('hex') === given
  );
}

function signingKey(secret: string, scope: string): Buffer {
  let key: Buffer = Buffer.from(`AWS4${secret}`);
  for (const part of scope.split('/')) key = createHmac('sha256', key).update(part).digest();
  return key;
}

type Parameter = readonly [name: string, value: string];

export function parameters(target: string): Parameter[] {
  const search = target.split('?').slice(1).join('?');
  if (search === '') return [];
  return search.split('&').map((pair) => {
    const [name = '', ...value] = pair.split('=');
    return [decodeURIComponent(name), decodeURIComponent(value.join('='))] as const;
  });
}

function canonicalQuery(query: readonly Parameter[]): string {
  const pairs = query.map(([name, value]) => `${uriEncode(name)}=${uriEncode(value)}`);
  // By encoded name, then by encoded value.
  const key = (pair: string) => pair.replace('=', '\u0000');
  return pairs.toSorted((a, b) => (key(a) < key(b) ? -1 : 1)).join('&');
}

function canonicalPath(target: string): string {
  return (target.split('?')[0] ?? '')
    .split('/')
    .map((part) => uriEncode(decodeURIComponent(part)))
    .join('/');
}

const unreserved = /[A-Za-z0-9\-._~]/;
function uriEncode(text: string): string {
  return [...Buffer.from(text)]
    .map((byte) =>
      byte < 128 && unreserved.test(String.fromCharCode(byte))
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    )
    .join('');
}

function instant(date: string): number | null {
  const [, y, mo, d, h, mi, s] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date) ?? [];
  return y === undefined ? null : Date.UTC(Number(y), Number(mo) - 1, Number(d), Number(h), Number(mi), Number(s));
}
