import { assertStorableJson, assertStorableText } from '../../db/values/storable-text.ts';
import { Controller } from '../../http/compile/controller.ts';
import type { Exchange } from '../../http/exchange/exchange.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { raw, type RawContent } from '../../http/declare/raw.ts';
import { route } from '../../http/declare/route.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import { allowAny } from '../../permissions/built-ins.ts';
import { clientThrottle } from '../../throttle/throttles.ts';
import { type BetterAuthInstance, type InstanceContext, optionsOf } from './instance.ts';
import { IMPERSONATED_HEADER } from './kit-plugin.ts';
import type { BetterAuthSettings } from './options.ts';

const AnyQuery = jsonSchema<object>({ type: 'object', additionalProperties: true });

/** Bounds what one client can make the server hash. better-auth has stricter limits for single routes. */
const perClient = clientThrottle('600/min', { name: 'better_auth_client' });

/** Where the plugin `jwt()` puts an access token of the session's user. It does not say that staff act as the user, who could create API keys with it. */
const JWT_HEADER = 'set-auth-jwt';

/** Headers that our own server sets, or that clients must not choose. */
const NOT_PASSED_ON: ReadonlySet<string> = new Set([
  'content-length',
  'transfer-encoding',
  'connection',
  'host',
  'x-forwarded-host',
  'x-forwarded-proto',
]);

/** Everything below better-auth's base path. Routes of the table, so that throttles, logs, limits and metrics hold for them. */
export function authController(auth: BetterAuthInstance, context: () => InstanceContext, { bodyBytesMax }: BetterAuthSettings): Controller {
  // better-auth authenticates its callers, and checks the origin itself.
  const facts = {
    permission: allowAny,
    auth: [],
    csrf: false,
    hidden: true,
    tool: false,
    metadata: { openWrite: 'better-auth authenticates its callers' },
    query: AnyQuery,
    response: raw('application/json'),
  } as const;
  const withBody = { ...facts, throttles: [perClient], body: raw(['*/*'], { bytesMax: bodyBytesMax }) } as const;
  const respond = ({ request, reply, body }: Pick<HandlerContext, 'request' | 'reply'> & { readonly body?: unknown }) =>
    forward(auth, context(), exchangeOf(request), reply, body);

  class KitBetterAuthController extends Controller {
    get = route.get('/*', facts, respond);
    post = route.post('/*', withBody, respond);
    put = route.put('/*', withBody, respond);
    patch = route.patch('/*', withBody, respond);
    delete = route.delete('/*', withBody, respond);
  }
  return new KitBetterAuthController();
}

async function forward(
  auth: BetterAuthInstance,
  context: InstanceContext,
  exchange: Exchange,
  reply: HandlerContext['reply'],
  body: unknown,
): Promise<RawContent> {
  // The path alone: a request line can have a whole URL, and `//host` would be one.
  const path = exchange.url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '');
  const bytes = body instanceof Uint8Array && body.length > 0 ? new Uint8Array(body) : null;
  if (bytes !== null) refuseUnstorable(bytes, exchange.headers['content-type']);
  const base = new URL(context.baseURL);
  const url = new URL(`${base.origin}${path}`);
  const headers = headersOf(auth, exchange);
  // The route that the cookie cache is for: it answers with what the cookie has, until the cache is too old.
  if (url.pathname !== `${base.pathname}/get-session`) dropCachedSession(headers, context.authCookies.sessionData.name);
  const response = await auth.handler(new Request(url, { method: exchange.method, headers, body: bytes }));
  if (response.headers.has(IMPERSONATED_HEADER)) for (const name of [IMPERSONATED_HEADER, JWT_HEADER]) response.headers.delete(name);
  reply.code(response.status).header('cache-control', 'no-store');
  for (const [name, value] of response.headers)
    if (name !== 'set-cookie' && name !== 'content-length') reply.header(name, name === 'location' ? onOwnHost(value) : value);
  passCookies(response, reply);
  return new Uint8Array(await response.arrayBuffer());
}

/**
 * better-auth responds with 500 and prints the error when the database refuses a text. U+0000 and half a surrogate pair can only be written as escapes
 * in JSON. A body that is no JSON is refused by better-auth.
 */
function refuseUnstorable(bytes: Uint8Array, contentType: string | readonly string[] | undefined): void {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  if (String(contentType).toLowerCase().startsWith('application/x-www-form-urlencoded')) {
    for (const [name, value] of new URLSearchParams(text)) [name, value].forEach(assertStorableText);
    return;
  }
  if (!text.includes('\\u')) return;
  const value = parsed(text);
  // JSON.stringify escapes only what cannot be stored.
  if (value !== undefined) assertStorableJson(JSON.stringify(value));
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return undefined;
  }
}

/** To a browser, a path with two slashes at its beginning is another host. better-auth 1.7 makes one of the callback URL `/..//evil.example`. */
function onOwnHost(location: string): string {
  return location.replace(/^\s*[/\\]\s*(?:[/\\]\s*)+/, '/');
}

/**
 * The cookie cache of better-auth is a copy of session and user: with it, banned, signed-out and demoted users could still invite members and ban
 * others for minutes. Everything but `get-session` reads the session from the database.
 */
function dropCachedSession(headers: Headers, name: string): void {
  const cookies = headers.get('cookie');
  if (cookies === null) return;
  const kept = cookies.split(';').filter((pair) => {
    const key = pair.split('=', 1)[0]?.trim() ?? '';
    // Long ones are sent in parts: name.0, name.1.
    return key !== name && !key.startsWith(`${name}.`);
  });
  headers.set('cookie', kept.join(';'));
}

/** Ends the session of a request with better-auth's own route, which also clears its cookies. */
export async function signOut(
  auth: BetterAuthInstance,
  { baseURL }: InstanceContext,
  exchange: Exchange,
  reply: HandlerContext['reply'],
): Promise<void> {
  const headers = headersOf(auth, exchange);
  headers.set('content-type', 'application/json');
  passCookies(await auth.handler(new Request(`${baseURL}/sign-out`, { method: 'POST', headers, body: '{}' })), reply);
}

function passCookies(response: Response, reply: HandlerContext['reply']): void {
  const cookies = response.headers.getSetCookie();
  if (cookies.length > 0) reply.header('set-cookie', cookies);
}

/** better-auth takes the client's address from a header, by which it also limits rates: it gets the address that we know, whatever was sent. */
function headersOf(auth: BetterAuthInstance, { headers: sent, clientAddress }: Exchange): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(sent)) {
    if (value === undefined || NOT_PASSED_ON.has(name)) continue;
    for (const each of typeof value === 'string' ? [value] : value) headers.append(name, each);
  }
  const { ipAddressHeaders = [] } = optionsOf(auth).advanced?.ipAddress ?? {};
  for (const name of ['x-forwarded-for', ...ipAddressHeaders]) headers.set(name, clientAddress);
  return headers;
}
