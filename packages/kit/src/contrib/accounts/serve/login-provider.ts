import type { LoginProvider } from '../../../app/declare/login-provider.ts';
import { accountsOf } from '../users/accounts.ts';
import { loginClientThrottle } from '../login/login-throttle.ts';
import { publicUser } from '../users/manage-users.ts';
import { csrfTokenOf, endSession, logInByPassword } from '../login/password-login.ts';
import { siteAccountController } from './site-account-controller.ts';

/** The login by password, and the sessions of this module. Sites show the form themselves. */
export const accountsLogin: LoginProvider = Object.freeze<LoginProvider>({
  authenticators: ['session'],
  csrfToken: (context) => csrfTokenOf(context, accountsOf(context.db)),
  logOut: endSession,
  form: {
    throttles: [loginClientThrottle],
    async logIn(context, given, admit) {
      const opened = await logInByPassword(context, given, (tx, user) => admit(tx, publicUser(user)));
      const factors = { verified: 'proved', setup_required: 'missing', off: undefined } as const;
      return { user: publicUser(opened.user), csrfToken: opened.csrf_token, secondFactor: factors[opened.second_factor] };
    },
    account: siteAccountController,
  },
});
