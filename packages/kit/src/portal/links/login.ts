import type { LoginProvider } from '../../app/declare/login-provider.ts';
import { sessionDigest } from '../../contrib/accounts/sessions/session-token.ts';
import { removeSession } from './rows.ts';
import { csrfTokenOf, PORTAL_SESSION, portalCookie, tokenOf } from './session.ts';

/** The login of the app, and beside it the sessions of links, which come first: who opens a link means its user. */
export function withLinks(login: LoginProvider | null, prefix: string, isSecure: boolean): LoginProvider {
  const { loginUrl, accountUrl, form } = login ?? {};
  return {
    ...(loginUrl === undefined ? {} : { loginUrl }),
    ...(accountUrl === undefined ? {} : { accountUrl }),
    ...(form === undefined ? {} : { form }),
    authenticators: [PORTAL_SESSION, ...(login?.authenticators ?? [])],
    csrfToken(context) {
      if (context.principal?.scheme === PORTAL_SESSION) return csrfTokenOf(context.request.headers, isSecure);
      return login?.csrfToken?.(context) ?? null;
    },
    async logOut(context) {
      const found = tokenOf(context.request.headers, isSecure);
      // Only a caller of this kind has proved the CSRF token; anyone else has no session to end.
      if (found !== null && context.principal?.scheme === PORTAL_SESSION) await removeSession(context.db, sessionDigest(found.token));
      // Behind a proxy that puts something before the path it stays, and names no session any more.
      if (found?.isAmbient === true) void context.reply.header('set-cookie', `${portalCookie('', 0, isSecure)}; Path=${prefix}`);
      if (context.principal?.scheme !== PORTAL_SESSION) await login?.logOut(context);
    },
  };
}
