import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Authenticator, AuthRequest } from '../../auth/request/authenticator.ts';
import type { Principal } from '../../auth/people/principal.ts';
import { isTrue } from '../../auth/people/user-table.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { readCookie } from '../../http/declare/read-cookie.ts';
import { type InstanceContext, isTrustedOrigin } from './instance.ts';
import type { BetterAuthSettings } from './options.ts';
import { rememberMembership } from './organizations.ts';
import { findSession, findSessions, type FoundSession, membershipOf } from './store.ts';

/** A session token has 32 characters and its signature 44; percent-encoding makes them a few more. */
const SIGNED_LENGTH_MAX = 512;

/** The instance, once the app is ready; before that nothing is authenticated. */
type Context = () => InstanceContext;

/**
 * Sessions by cookie. better-auth gives pages no CSRF token, so one of the two headers that a page cannot forge must show that the request comes
 * from a trusted page. Sessions are renewed by better-auth's own route, `get-session`.
 */
export function cookieAuthenticator(context: Context, cookieName: string, settings: BetterAuthSettings): Authenticator {
  return {
    name: 'session',
    securityScheme: { type: 'apiKey', in: 'cookie', name: cookieName, description: 'Unsafe methods also need a trusted Origin.' },
    // A cookie without a session is no credential.
    raises: [],
    authenticate(request) {
      const { authCookies, secret } = context();
      const value = readCookie(request.headers['cookie'], authCookies.sessionToken.name);
      const token = value === null ? null : signedToken(value, secret);
      return token === null ? null : findPrincipal(request, token, 'session', context(), settings);
    },
    principalsOf: (db, ids) => principalsOf(db, ids, 'session', context()),
    async verifyCsrf(request) {
      const { origin, 'sec-fetch-site': site } = request.headers;
      if (origin === undefined && site === 'same-origin') return;
      if (typeof origin === 'string' && (await isTrustedOrigin(context(), origin, request))) return;
      const reason = origin === undefined ? 'neither Origin nor Sec-Fetch-Site: same-origin was sent' : 'the Origin is not trusted';
      throw coreErrors.csrf_failed({ message: `CSRF: ${reason}` });
    },
  };
}

/** Sessions by `Authorization: Bearer`, for instances with the plugin `bearer({ requireSignature: true })`. */
export function bearerAuthenticator(context: Context, settings: BetterAuthSettings): Authenticator {
  return {
    name: 'session_bearer',
    challenge: 'Bearer realm="api"',
    securityScheme: { type: 'http', scheme: 'bearer', description: 'The signed session token of the header `set-auth-token`.' },
    async authenticate(request) {
      const header = request.headers['authorization'];
      if (typeof header !== 'string' || !/^bearer /i.test(header)) return null;
      const token = signedToken(header.slice('bearer '.length).trim(), context().secret);
      // An API key, or a token of another issuer.
      if (token === null) return null;
      const principal = await findPrincipal(request, token, 'session_bearer', context(), settings);
      if (principal === null) throw coreErrors.invalid_credentials();
      return principal;
    },
    principalsOf: (db, ids) => principalsOf(db, ids, 'session_bearer', context()),
  };
}

async function findPrincipal(
  request: AuthRequest,
  token: string,
  scheme: string,
  context: InstanceContext,
  { organization }: BetterAuthSettings,
): Promise<Principal | null> {
  const asked = organization(request);
  const found = await findSession(request.db, token, asked);
  if (found === null) return null;
  const principal = principalOf(found, scheme, context, request.db.clock.now());
  const { organization: member, roles, suspended } = found;
  rememberMembership(principal, {
    asked,
    found: member === null ? null : membershipOf({ organization: member, roles: roles ?? '', suspended }),
  });
  return principal;
}

async function principalsOf(
  db: AuthRequest['db'],
  ids: readonly string[],
  scheme: string,
  context: InstanceContext,
): Promise<ReadonlyMap<string, Principal>> {
  const now = db.clock.now();
  const found = await findSessions(db, ids);
  return new Map(found.map((session) => [session.session_id, principalOf(session, scheme, context, now)]));
}

function principalOf(found: FoundSession, scheme: string, { sessionConfig }: InstanceContext, now: Date): Principal {
  const { session_id, created_at, impersonated_by, id, username, email, organization } = found;
  const ageMs = now.getTime() - new Date(created_at).getTime();
  return {
    user: { id, username, email, is_active: true, is_staff: isTrue(found.is_staff), is_superuser: isTrue(found.is_superuser) },
    scheme,
    scopes: null,
    credentialId: session_id,
    tenant: organization,
    isTenantDefault: true,
    // better-auth's own measure for sensitive changes; 0 switches it off.
    recentLogin: sessionConfig.freshAge === 0 || ageMs <= sessionConfig.freshAge * 1000,
    ...(impersonated_by === null ? {} : { impersonatedBy: impersonated_by }),
  };
}

/** The token of `<token>.<HMAC-SHA-256 in base64>`, percent-encoded or not; null unless the signature is right. */
export function signedToken(value: string, secret: string): string | null {
  if (value.length > SIGNED_LENGTH_MAX) return null;
  const plain = value.includes('%') ? decoded(value) : value;
  const at = plain.lastIndexOf('.');
  if (at < 1) return null;
  const token = plain.slice(0, at);
  const given = Buffer.from(plain.slice(at + 1), 'base64');
  const right = createHmac('sha256', secret).update(token).digest();
  return given.length === right.length && timingSafeEqual(given, right) ? token : null;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}
