import type { Authenticator, AuthRequest } from '../../auth/authenticator.ts';
import type { Principal } from '../../auth/principal.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { accountsOf } from './accounts.ts';
import { readCookie, sessionCookieName } from './cookie.ts';
import { publicUser } from './manage-users.ts';
import type { AccountsSettings } from './options.ts';
import { originFault } from './request-origin.ts';
import { isCsrfToken, isSessionToken, sessionDigest } from './session-token.ts';
import { findSession, findSessions, markSeen, type SessionWithUser } from './store.ts';

export const CSRF_HEADER = 'x-csrf-token';

/** Idle time is measured this exactly, at most: a busy session is written once a minute, not once a request. */
const SEEN_EVERY_MS = 60_000;

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
      return principalOf(session);
    },
    async principalsOf(db, sessionIds) {
      const now = accountsOf(db).clock.now();
      const live = await findSessions(db, sessionIds, now, new Date(now.getTime() - settings.sessionIdleMs));
      return new Map(live.map((session) => [session.session_id, principalOf(session)]));
    },
    verifyCsrf(request: AuthRequest) {
      const fault = csrfFault(request, settings, origins);
      if (fault !== null) throw coreErrors.csrf_failed({ message: `CSRF: ${fault}` });
    },
  };
}

function principalOf(session: SessionWithUser): Principal {
  return { user: publicUser(session), scheme: 'session', scopes: null, credentialId: session.session_id };
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
