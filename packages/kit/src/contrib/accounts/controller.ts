import { coreErrors } from '../../errors/core-errors.ts';
import { Controller } from '../../http/controller.ts';
import { route } from '../../http/route.ts';
import { allowAny, isAuthenticated } from '../../permissions/built-ins.ts';
import { all, Permission } from '../../permissions/permission.ts';
import { accountsOf } from './accounts.ts';
import { accountErrors, loginFailed } from './errors.ts';
import { loginClientThrottle, logoutClientThrottle, takeLoginAttempt } from './login-throttle.ts';
import { hashNewPassword, publicUser, replacePassword } from './manage-users.ts';
import { csrfTokenOf, endSession, logInByPassword, sessionAnswer } from './password-login.ts';
import { LoginBody, PasswordBody, SessionAnswer } from './schemas.ts';
import { openSession, verifiedUser } from './sessions.ts';
import { lockForLogin } from './store.ts';
import type { App } from '../../app/module.ts';
import { requiredModule } from '../../app/required-module.ts';
import type { Fault } from '../../options/fault.ts';

/** A password is changed by the person at the browser: never by a key, whichever authenticators a wrapped route names. */
const bySession = new Permission({ name: 'bySession', evaluate: ({ principal }) => principal?.scheme === 'session' });

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
    (context) => logInByPassword(context, context.body),
  );

  logout = route.post(
    '/logout',
    {
      permission: allowAny,
      throttles: [logoutClientThrottle],
      summary: 'End the session',
      description: 'Repeatable; also clears the cookie of a session that has ended already.',
    },
    (context) => endSession(context),
  );

  me = route.get(
    '/me',
    { response: SessionAnswer, permission: isAuthenticated, summary: 'The user behind the request' },
    async (context) => {
      const accounts = accountsOf(context.db);
      void context.reply.header('cache-control', 'no-store');
      return { user: publicUser(context.user), csrf_token: csrfTokenOf(context, accounts) };
    },
  );

  password = route.post(
    '/password',
    {
      body: PasswordBody,
      response: SessionAnswer,
      permission: all(isAuthenticated, bySession),
      auth: ['session'],
      raises: [coreErrors.invalid_credentials, accountErrors.weak_password, coreErrors.throttled],
      summary: 'Change your password',
      description: 'Every session of the user ends; the answer sets the cookie of a new one.',
    },
    async (context) => {
      const accounts = accountsOf(context.db);
      const { current_password, new_password } = context.body;
      const { username } = context.user;
      const giveBack = await takeLoginAttempt(context.db, username, accounts.throttleStorage, accounts.throttleRates, context.clock.now());
      const user = await verifiedUser(context.db, username, current_password, accounts.settings);
      await giveBack();
      const hash = await hashNewPassword(new_password, user, accounts.settings.passwordCost);
      const session = await context.db.transaction(async (tx) => {
        // It was not changed, nor the user deactivated, since it was verified: else two changes at once would both count.
        if (!(await lockForLogin(tx, user.id, user.password_hash ?? '', user.password_hash ?? ''))) throw loginFailed();
        const changed = await replacePassword(tx, user.id, hash, accounts.management(context.principal, context.requestId));
        return openSession(tx, changed, accounts.settings, context.clock);
      });
      return sessionAnswer(context, accounts, session);
    },
  );

  faults(app: App): readonly Fault[] {
    return requiredModule(app, 'accounts', this.constructor.name, 'accounts()');
  }
}
