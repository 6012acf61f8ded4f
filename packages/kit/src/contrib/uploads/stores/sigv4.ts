import { createHash, createHmac } from 'node:crypto';

/** Who signs. Never logged and never part of an error. */
export interface S3Credentials {
  /** The id of the access key. */
  readonly accessKeyId: string;
  /** The secret of the access key. */
  readonly secretAccessKey: string;
  /** Of temporary credentials. */
  readonly sessionToken?: string;
}

/** What a signature is made with besides the request itself. */
export interface SigningContext {
  readonly credentials: S3Credentials;
  readonly region: string;
  readonly now: Date;
}

type Pairs = readonly (readonly [name: string, value: string])[];

export interface SignableRequest {
  readonly method: string;
  /** `https://host[:port]`. */
  readonly origin: string;
  /** Not encoded: `/bucket/a b.txt`. */
  readonly path: string;
  readonly query?: Pairs;
  /** By name in lower case; `host` is added. */
  readonly headers?: Readonly<Record<string, string>>;
}

const ALGORITHM = 'AWS4-HMAC-SHA256';
export const UNSIGNED_PAYLOAD = 'UNSIGNED-PAYLOAD';
const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

/** A URL that carries its signature: a client that has it may make this one request until it expires. The given headers must be sent as they are. */
export function presignUrl(request: SignableRequest, context: SigningContext, expiresInSeconds: number): string {
  const { credentials, now } = context;
  const headers = withHost(request);
  const query: Pairs = [
    ...(request.query ?? []),
    ['X-Amz-Algorithm', ALGORITHM],
    ['X-Amz-Credential', `${credentials.accessKeyId}/${scopeOf(context)}`],
    ['X-Amz-Date', amzDate(now)],
    ['X-Amz-Expires', String(expiresInSeconds)],
    ...(credentials.sessionToken === undefined ? [] : [['X-Amz-Security-Token', credentials.sessionToken] as const]),
    ['X-Amz-SignedHeaders', signedHeaders(headers)],
  ];
  const signature = sign(canonicalRequest({ ...request, query, headers }, UNSIGNED_PAYLOAD), context);
  return `${request.origin}${encodePath(request.path)}?${canonicalQuery([...query, ['X-Amz-Signature', signature]])}`;
}

/** The headers to send with the request, `authorization` among them. */
export function signHeaders(request: SignableRequest, context: SigningContext, payloadSha256 = EMPTY_SHA256): Record<string, string> {
  const { credentials, now } = context;
  const headers: Record<string, string> = {
    ...withHost(request),
    'x-amz-content-sha256': payloadSha256,
    'x-amz-date': amzDate(now),
    ...(credentials.sessionToken === undefined ? {} : { 'x-amz-security-token': credentials.sessionToken }),
  };
  const signature = sign(canonicalRequest({ ...request, headers }, payloadSha256), context);
  const credential = `${credentials.accessKeyId}/${scopeOf(context)}`;
  return {
    ...headers,
    authorization: `${ALGORITHM} Credential=${credential},SignedHeaders=${signedHeaders(headers)},Signature=${signature}`,
  };
}

export type PolicyCondition =
  | Readonly<Record<string, string>>
  | readonly ['starts-with' | 'eq', string, string]
  | readonly ['content-length-range', number, number];

/** The form fields of a browser's POST: a policy the store holds the upload to, and its signature. */
export function signPostPolicy(
  { conditions, expiresAt }: { readonly conditions: readonly PolicyCondition[]; readonly expiresAt: Date },
  context: SigningContext,
): Record<string, string> {
  const { credentials, now } = context;
  const fields: Record<string, string> = {
    'x-amz-algorithm': ALGORITHM,
    'x-amz-credential': `${credentials.accessKeyId}/${scopeOf(context)}`,
    'x-amz-date': amzDate(now),
    ...(credentials.sessionToken === undefined ? {} : { 'x-amz-security-token': credentials.sessionToken }),
  };
  const signed = Object.entries(fields).map(([name, value]) => ({ [name]: value }));
  const policy = Buffer.from(JSON.stringify({ expiration: expiresAt.toISOString(), conditions: [...conditions, ...signed] })).toString(
    'base64',
  );
  return { ...fields, policy, 'x-amz-signature': policySignature(policy, context) };
}

/** The string to sign of a POST is its policy in base64. */
export function policySignature(policy: string, context: SigningContext): string {
  return hmac(signingKey(context), policy).toString('hex');
}

export function canonicalRequest(request: SignableRequest, payloadSha256: string): string {
  const headers = sorted(Object.entries(request.headers ?? {}));
  return [
    request.method,
    encodePath(request.path),
    canonicalQuery(request.query ?? []),
    ...headers.map(([name, value]) => `${name}:${value.trim().replaceAll(/\s+/g, ' ')}`),
    '',
    signedHeaders(request.headers ?? {}),
    payloadSha256,
  ].join('\n');
}

function sign(canonical: string, context: SigningContext): string {
  const digest = createHash('sha256').update(canonical).digest('hex');
  const text = [ALGORITHM, amzDate(context.now), scopeOf(context), digest].join('\n');
  return hmac(signingKey(context), text).toString('hex');
}

function signingKey({ credentials, region, now }: SigningContext): Buffer {
  const day = amzDate(now).slice(0, 8);
  return [day, region, 's3', 'aws4_request'].reduce<Buffer>(
    (key, part) => hmac(key, part),
    Buffer.from(`AWS4${credentials.secretAccessKey}`),
  );
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function scopeOf({ region, now }: SigningContext): string {
  return `${amzDate(now).slice(0, 8)}/${region}/s3/aws4_request`;
}

/** `20130524T000000Z`. */
export function amzDate(now: Date): string {
  return now.toISOString().replaceAll(/[-:]|\.\d{3}/g, '');
}

function withHost({ origin, headers }: SignableRequest): Record<string, string> {
  return { ...headers, host: new URL(origin).host };
}

function signedHeaders(headers: Readonly<Record<string, string>>): string {
  return sorted(Object.entries(headers))
    .map(([name]) => name)
    .join(';');
}

function canonicalQuery(query: Pairs): string {
  return sorted(query.map(([name, value]) => [encode(name), encode(value)] as const))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
}

function sorted<P extends readonly [string, string]>(pairs: readonly P[]): P[] {
  return pairs.toSorted(([a, av], [b, bv]) => (a === b ? (av < bv ? -1 : 1) : a < b ? -1 : 1));
}

/** Each part is encoded once: S3, unlike other services, does not encode the path twice. */
export function encodePath(path: string): string {
  return path.split('/').map(encode).join('/');
}

/** RFC 3986: everything but letters, digits and `-._~`. */
function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
}
