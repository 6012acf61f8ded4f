import type { Principal, User } from '../../auth/index.ts';
import { coreErrors } from '../../errors/index.ts';
import { Controller, route, type HandlerContext } from '../../http/index.ts';
import { allowAny, isAuthenticated } from '../../permissions/index.ts';
import { accountsService, type Accounts } from './accounts.ts';
import { clearedSessionCookie, sessionCookie } from './cookie.ts';
import { accountErrors, loginFailed } from './errors.ts';
import { loginClientThrottle, logoutClientThrottle, takeLoginAttempt } from './login-throttle.ts';
import { hashNewPassword, publicUser, replacePassword } from './manage-users.ts';
import { originFault } from './request-origin.ts';
import { LoginBody, PasswordBody, SessionAnswer } from './schemas.ts';
import { sessionTokenOf } from './session-authenticator.ts';
import { csrfToken } from './session-token.ts';
import { logIn, logOut, openSession, verifiedUser, type NewSession } from './sessions.ts';
import { holdForLogin } from './store.ts';

/** Password login and sessions for browsers. Mounted where the app likes: `'/account': AccountController`. */
export class AccountController extends Controller {
  static override readonly tags = ['account'];

  login = route.post(
    '/login',
    {
      body: LoginBody,
      response: SessionAnswer,
      permission: allowAny,
      throttles: [loginClientThrottle],
      csrf: false,
      auth: [],
      raises: [coreErrors.invalid_credentials, coreErrors.throttled, coreErrors.csrf_failed],
      summary: 'Log in with a password',
      description: 'Sets the session cookie. A session the request already carries ends.',
    },
    async (context) => {
      const accounts = await context.services.get(accountsService);
      requireOwnOrigin(context, accounts);
      const { login, password } = context.body;
      const giveBack = await takeLoginAttempt(login, accounts.throttleStorage, accounts.throttleRates, context.clock.now());
      const previousToken = sessionTokenOf(context.request.headers, accounts.settings);
      const session = await logIn(context.db, { login, password, previousToken }, accounts.settings, context.clock);
      await giveBack();
      return sessionAnswer(context, accounts, session);
    },
  );

  logout = route.post(
    '/logout',
    {
      permission: allowAny,
      throttles: [logoutClientThrottle],
      summary: 'End the session',
      description: 'Repeatable; also clears the cookie of a session that has ended already.',
    },
    async (context) => {
      const accounts = await context.services.get(accountsService);
      const token = sessionTokenOf(context.request.headers, accounts.settings);
      // Only a principal of kind `session` has proved its CSRF token; anyone else has no live session to end.
      if (token !== null && context.principal?.scheme === 'session') await logOut(context.db, token);
      void context.reply
        .header('set-cookie', clearedSessionCookie({ secure: accounts.settings.secureCookies }))
        .header('cache-control', 'no-store');
    },
  );

  me = route.get(
    '/me',
    { response: SessionAnswer, permission: isAuthenticated, summary: 'The user behind the request' },
    async (context) => {
      const accounts = await context.services.get(accountsService);
      void context.reply.header('cache-control', 'no-store');
      return { user: publicUser(context.user), csrf_token: csrfTokenOf(context, context.principal, accounts) };
    },
  );

  password = route.post(
    '/password',
    {
      body: PasswordBody,
      response: SessionAnswer,
      permission: isAuthenticated,
      auth: ['session'],
      raises: [coreErrors.invalid_credentials, accountErrors.weak_password, coreErrors.throttled],
      summary: 'Change the own password',
      description: 'Every session of the user ends; the answer sets the cookie of a new one.',
    },
    async (context) => {
      const accounts = await context.services.get(accountsService);
      const { current_password, new_password } = context.body;
      const { username } = context.user;
      const giveBack = await takeLoginAttempt(username, accounts.throttleStorage, accounts.throttleRates, context.clock.now());
      const user = await verifiedUser(context.db, username, current_password, accounts.settings);
      await giveBack();
      const hash = await hashNewPassword(new_password, user, accounts.settings.passwordCost);
      const session = await context.db.transaction(async (tx) => {
        // Nobody has changed it, or deactivated the user, since it was verified: else two changes at once would both count.
        if (!(await holdForLogin(tx, user.id, user.password_hash ?? '', user.password_hash ?? ''))) throw loginFailed();
        const changed = await replacePassword(tx, user.id, hash, accounts.management(context.principal, context.requestId));
        return openSession(tx, changed, accounts.settings, context.clock);
      });
      return sessionAnswer(context, accounts, session);
    },
  );
}

type Context = Pick<HandlerContext, 'request' | 'reply'>;

/** Another site must not be able to log its visitor in as somebody else. There is no session yet to bind a token to. */
function requireOwnOrigin({ request }: Context, { settings }: Accounts): void {
  const fault = originFault(request.headers, { trustedOrigins: settings.trustedOrigins, secure: settings.secureCookies });
  if (fault !== null) throw coreErrors.csrf_failed({ message: `login: ${fault}` });
}

function sessionAnswer(context: Context, { settings }: Accounts, session: NewSession): { user: User; csrf_token: string } {
  const cookie = sessionCookie(session.token, Math.floor(settings.sessionLifetimeMs / 1000), { secure: settings.secureCookies });
  void context.reply.header('set-cookie', cookie).header('cache-control', 'no-store');
  return { user: publicUser(session.user), csrf_token: csrfToken(session.token) };
}

function csrfTokenOf({ request }: Context, principal: Principal, { settings }: Accounts): string | null {
  const token = principal.scheme === 'session' ? sessionTokenOf(request.headers, settings) : null;
  return token === null ? null : csrfToken(token);
}
