import { hash } from 'node:crypto';
import type { Membership } from '../../auth/people/membership.ts';
import type { Principal } from '../../auth/people/principal.ts';
import { canonicalJson } from '../../db/values/canonical-json.ts';
import { idempotencyErrors } from '../errors.ts';

/** What a request is told apart by. */
export interface IdentifiedRequest {
  readonly principal: Principal | null;
  /** Set for a caller without credentials. */
  readonly anonymous: string | undefined;
  readonly tenant: string | null;
  readonly operationId: string;
  readonly method: string;
  /** With its query string. */
  readonly url: string;
  /** As it was sent: parsed JSON, or bytes. */
  readonly body: unknown;
  /** Headers and cookies that the route declares as its input. */
  readonly declared: readonly unknown[];
}

/** 1 to 255 visible ASCII characters; undefined without the header. */
export function readKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (typeof header !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(header)) throw idempotencyErrors.invalid_idempotency_key();
  return header;
}

/** One key of one caller for one operation at one address: SHA-256, in hex. */
export function scopeHash(request: IdentifiedRequest, key: string): string {
  const { principal, anonymous, tenant, operationId } = request;
  const [path] = split(request.url);
  return digest([...credentialOf(principal, anonymous), tenant, operationId, path, key]);
}

/** Of a session only its kind counts: who logged in again may repeat a request. An API key is a caller of its own. */
function credentialOf(principal: Principal | null, anonymous: string | undefined): unknown[] {
  if (principal === null) return ['anonymous', anonymous];
  const { user, scheme, credentialId } = principal;
  return ['user', user.id, scheme, scheme === 'session' ? null : (credentialId ?? null)];
}

/** For people who look at the table: `user ann via api_key`. */
export function callerText({ principal, anonymous, tenant }: IdentifiedRequest): string {
  // Anonymous callers are told apart, without storing what they are known by.
  const who = principal === null ? `anonymous ${digest([anonymous]).slice(0, 12)}` : `user ${principal.user.id} via ${principal.scheme}`;
  return (tenant === null ? who : `${who} of ${tenant}`).slice(0, CALLER_LENGTH_MAX);
}

/** Length of the column. */
const CALLER_LENGTH_MAX = 400;

/** Equal for the same request, whatever the order of its members and parameters: SHA-256, in hex. */
export function fingerprintOf({ method, url, body, declared }: IdentifiedRequest): string {
  const [path, query] = split(url);
  const content = body instanceof Uint8Array ? ['bytes', hash('sha256', body, 'hex')] : ['json', canonicalJson(body ?? null)];
  return digest([method, path, query.split('&').toSorted(), content, ...declared]);
}

/** A repeated request may have others of these: a new token, another attempt of a trace. */
export const UNCOUNTED_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'x-api-key',
  'x-csrf-token',
  'x-request-id',
  'traceparent',
  'tracestate',
  'user-agent',
]);

/** Who may see the answer: a replay to a caller with other rights is not made. */
export function audienceOf(principal: Principal | null, membership: Membership | null, view: string): string {
  const rights = rightsOf(principal, membership);
  return digest([principal?.scopes?.toSorted() ?? null, view, ...(rights.length === 0 ? [] : [rights])]);
}

/** What a hand-written handler may look at besides the scopes. */
function rightsOf(principal: Principal | null, membership: Membership | null): readonly string[] {
  const { is_staff: isStaff = false, is_superuser: isSuperuser = false } = principal?.user ?? {};
  const roles = (membership?.roles ?? []).map((role) => `role ${role}`).toSorted();
  return [...(isStaff ? ['staff'] : []), ...(isSuperuser ? ['superuser'] : []), ...roles];
}

/** A slash at the end of the path makes no other address. */
function split(url: string): [path: string, query: string] {
  const mark = url.indexOf('?');
  const path = mark === -1 ? url : url.slice(0, mark);
  return [path.endsWith('/') ? path.slice(0, -1) : path, mark === -1 ? '' : url.slice(mark + 1)];
}

function digest(parts: readonly unknown[]): string {
  return hash('sha256', JSON.stringify(parts), 'hex');
}
