import type { Authenticator, AuthRequest } from '../../auth/request/authenticator.ts';
import type { Principal, User } from '../../auth/people/principal.ts';
import { originFault } from '../../contrib/accounts/sessions/request-origin.ts';
import { csrfToken, isCsrfToken, isSessionToken, sessionDigest } from '../../contrib/accounts/sessions/session-token.ts';
import type { Db } from '../../db/engine/db.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { readCookie } from '../../http/declare/read-cookie.ts';
import type { LinkReach, LinkScope } from './reach.ts';
import { findSessions, type PortalLinkRow } from './rows.ts';
import { portalState } from './state.ts';

export const PORTAL_SESSION = 'portal_session';
/** How long a session lasts, from the click on its link. */
export const SESSION_MS = 8 * 3_600_000;
/** How long after the link credentials can be made. */
const RECENT_MS = 10 * 60_000;
/** Of a page in a frame, which has no cookies: the token is in its memory. */
export const TOKEN_HEADER = 'x-portal-session';

type Headers = AuthRequest['headers'];

const scopes = new WeakMap<Principal, LinkScope>();

/** Undefined for a caller who has logged in. */
export const linkScopeOf = (principal: Principal): LinkScope | undefined => scopes.get(principal);

/** The cookie has no `Path`: browsers bind it to the folder of `…/portal/link`, which sets it, whatever a proxy puts before it. */
export function portalCookie(token: string, maxAgeSeconds: number, isSecure: boolean): string {
  const parts = [`${cookieName(isSecure)}=${token}`, `Max-Age=${maxAgeSeconds}`, 'HttpOnly', 'SameSite=Strict'];
  return (isSecure ? [...parts, 'Secure'] : parts).join('; ');
}

const cookieName = (isSecure: boolean): string => (isSecure ? '__Secure-kit_portal' : 'kit_portal');

/** The token of the request, and whether the browser sent it by itself. */
export function tokenOf(headers: Headers, isSecure: boolean): { readonly token: string; readonly isAmbient: boolean } | null {
  const given = headers[TOKEN_HEADER];
  if (typeof given === 'string') return isSessionToken(given) ? { token: given, isAmbient: false } : null;
  const cookie = readCookie(headers['cookie'], cookieName(isSecure));
  return cookie !== null && isSessionToken(cookie) ? { token: cookie, isAmbient: true } : null;
}

/** Why the request cannot come from a page of the portal; null where it can. */
export function foreignFault(headers: Headers, isSecure: boolean): string | null {
  return originFault(headers, { trustedOrigins: [], secure: isSecure });
}

/** Sessions that links have opened. Requests with one reach the portal's own routes; its pages call for them what `reach` has, and nothing else. */
export function portalAuthenticator(isSecure: boolean, reach: LinkReach): Authenticator {
  return {
    name: PORTAL_SESSION,
    securityScheme: { type: 'apiKey', in: 'cookie', name: cookieName(isSecure), description: 'A session of the portal, opened by a link.' },
    raises: [],
    callsRoute: (route, principal) => reach.has(route, linkScopeOf(principal)),
    async authenticate({ headers, db }) {
      const found = tokenOf(headers, isSecure);
      if (found === null) return null;
      const { clock } = portalState.of(db);
      const [session] = await findSessions(db, 'session_digest', [sessionDigest(found.token)], clock.now());
      return session === undefined ? null : ((await principalsOf(db, [session])).get(session.id) ?? null);
    },
    async principalsOf(db, ids) {
      return principalsOf(db, await findSessions(db, 'id', ids, portalState.of(db).clock.now()));
    },
    verifyCsrf({ headers }) {
      const found = tokenOf(headers, isSecure);
      // A page puts a header there itself: no other site can.
      if (found?.isAmbient === false) return;
      const fault = foreignFault(headers, isSecure);
      if (fault !== null) throw coreErrors.csrf_failed({ message: `CSRF: ${fault}` });
      const given = headers['x-csrf-token'];
      if (found === null || typeof given !== 'string' || !isCsrfToken(given, found.token))
        throw coreErrors.csrf_failed({ message: 'CSRF: the header x-csrf-token is missing, or does not belong to the session' });
    },
  };
}

export const csrfTokenOf = (headers: Headers, isSecure: boolean): string | null => {
  const found = tokenOf(headers, isSecure);
  return found === null ? null : csrfToken(found.token);
};

async function principalsOf(db: Db, sessions: readonly PortalLinkRow[]): Promise<Map<string, Principal>> {
  const { clock, registry } = portalState.of(db);
  const now = clock.now().getTime();
  // Memberships are proved with each request, as for every credential that is bound to a tenant.
  const standings = await registry.standings.of(
    db,
    sessions.map(({ user_id: userId }) => ({ userId, tenant: null })),
  );
  return new Map(
    sessions.flatMap((session, index): [string, Principal][] => {
      const standing = standings[index];
      return standing?.ok === true ? [[session.id, principalOf(session, standing.user, now)]] : [];
    }),
  );
}

function principalOf({ id, tenant_id, pages, manage, created_at }: PortalLinkRow, user: User, now: number): Principal {
  const principal: Principal = {
    // A link is no proof of a second factor, and nobody works as staff here.
    user: { ...user, is_staff: false, is_superuser: false },
    scheme: PORTAL_SESSION,
    scopes: null,
    credentialId: id,
    recentLogin: manage && now - created_at.getTime() <= RECENT_MS,
    ...(tenant_id === null ? {} : { boundTenant: tenant_id, ...(tenant_id === '' ? {} : { tenant: tenant_id }) }),
  };
  scopes.set(principal, { pages, manage });
  return principal;
}
