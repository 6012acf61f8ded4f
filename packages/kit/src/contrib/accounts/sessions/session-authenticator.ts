import type { Authenticator, AuthRequest } from '../../../auth/request/authenticator.ts';
import type { Principal, User } from '../../../auth/people/principal.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { readCookie } from '../../../http/declare/read-cookie.ts';
import { accountsOf } from '../users/accounts.ts';
import { sessionCookieName } from './cookie.ts';
import { publicUser } from '../users/manage-users.ts';
import type { AccountsSettings } from '../options.ts';
import { originFault } from './request-origin.ts';
import { isCsrfToken, isSessionToken, sessionDigest } from './session-token.ts';
import { findSession, findSessions, markSeen, type SessionWithUser } from '../users/store.ts';

export const CSRF_HEADER = 'x-csrf-token';

/** Idle time is measured this exactly, at most: a busy session is written once a minute, not once a request. */
const SEEN_EVERY_MS = 60_000;
/** How long after a login, or a proof of presence, the settings of the account can be changed. */
const PRESENCE_MS = 10 * 60_000;

/**
 * Authenticates by session cookie. A cookie that names no live session makes the request anonymous, not bad: browsers
 * send it by themselves, and it must not lock its owner out of the login form.
 */
export function sessionAuthenticator(settings: AccountsSettings): Authenticator {
  const cookieName = sessionCookieName({ secure: settings.secureCookies });
  const origins = { trustedOrigins: settings.trustedOrigins, secure: settings.secureCookies };
  const seenEveryMs = Math.min(SEEN_EVERY_MS, settings.sessionIdleMs / 10);
  return {
    name: 'session',
    securityScheme: { type: 'apiKey', in: 'cookie', name: cookieName, description: `Unsafe methods also need the header ${CSRF_HEADER}.` },
    // A cookie without a session is no credential.
    raises: [],
    async authenticate(request) {
      const token = sessionTokenOf(request.headers, settings);
      if (token === null) return null;
      const { clock, log } = accountsOf(request.db);
      const now = clock.now();
      const session = await findSession(request.db, sessionDigest(token), now, new Date(now.getTime() - settings.sessionIdleMs));
      if (session === null) return null;
      if (now.getTime() - session.seen_at.getTime() >= seenEveryMs) {
        // Being seen is worth a log line when it cannot be written, not the request.
        await markSeen(request.db, session.session_id, now).catch((error: unknown) =>
          log.warn({ err: error }, 'A session could not be marked as seen.'),
        );
      }
      return principalOf(session, settings, now);
    },
    async principalsOf(db, sessionIds) {
      const now = accountsOf(db).clock.now();
      const live = await findSessions(db, sessionIds, now, new Date(now.getTime() - settings.sessionIdleMs));
      return new Map(live.map((session) => [session.session_id, principalOf(session, settings, now)]));
    },
    verifyCsrf(request: AuthRequest) {
      const fault = csrfFault(request, settings, origins);
      if (fault !== null) throw coreErrors.csrf_failed({ message: `CSRF: ${fault}` });
    },
  };
}

function principalOf(session: SessionWithUser, settings: AccountsSettings, now: Date): Principal {
  const { session_id: credentialId, chosen_tenant: tenant } = session;
  const principal = {
    scheme: 'session',
    scopes: null,
    credentialId,
    ...(tenant === null ? {} : { tenant, isTenantDefault: true }),
  } as const;
  const recentLogin = now.getTime() - session.present_at.getTime() <= PRESENCE_MS;
  return { user: effectiveUser(session, session.second_factor, settings), ...principal, recentLogin, ...factorFacts(session, settings) };
}

function factorFacts(session: SessionWithUser, settings: AccountsSettings): Pick<Principal, 'secondFactor'> {
  if (session.second_factor) return { secondFactor: 'proved' };
  return needsSecondFactor(session, settings) ? { secondFactor: 'missing' } : {};
}

/** Staff may do nothing as staff until the second factor is proved: whatever asks for `is_staff` is closed to a password alone. */
export function effectiveUser(user: User, secondFactor: boolean, settings: Pick<AccountsSettings, 'secondFactor'>): User {
  const { is_staff, is_superuser, ...rest } = publicUser(user);
  const isWithheld = !secondFactor && needsSecondFactor(user, settings);
  return { ...rest, is_staff: is_staff && !isWithheld, is_superuser: is_superuser && !isWithheld };
}

export function needsSecondFactor({ is_staff, is_superuser }: User, { secondFactor }: Pick<AccountsSettings, 'secondFactor'>): boolean {
  return secondFactor === 'required' && (is_staff || is_superuser);
}

/** The token in the request's session cookie; null when there is none of the right form. */
export function sessionTokenOf(headers: AuthRequest['headers'], { secureCookies }: Pick<AccountsSettings, 'secureCookies'>): string | null {
  const value = readCookie(headers['cookie'], sessionCookieName({ secure: secureCookies }));
  return value !== null && isSessionToken(value) ? value : null;
}

function csrfFault({ headers }: AuthRequest, settings: AccountsSettings, origins: Parameters<typeof originFault>[1]): string | null {
  const origin = originFault(headers, origins);
  if (origin !== null) return origin;
  const given = headers[CSRF_HEADER];
  const token = sessionTokenOf(headers, settings);
  if (typeof given !== 'string') return `the header ${CSRF_HEADER} is missing`;
  return token !== null && isCsrfToken(given, token) ? null : `the header ${CSRF_HEADER} does not belong to the session`;
}
