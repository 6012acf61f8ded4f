import { coreErrors } from '../../../errors/core-errors.ts';
import { Controller } from '../../../http/compile/controller.ts';
import { controllerOptions } from '../../../http/declare/controller-options.ts';
import { route } from '../../../http/declare/route.ts';
import { allowAny, hasRecentLogin, isAuthenticated, isStaff } from '../../../permissions/built-ins.ts';
import { all, Permission } from '../../../permissions/permission.ts';
import { accountsOf } from '../users/accounts.ts';
import { accountErrors } from '../errors.ts';
import { inviteUser } from '../mail/invite-user.ts';
import { useEmailLink, useLink } from '../mail/links.ts';
import {
  emailChangeThrottle,
  linkClientThrottle,
  loginClientThrottle,
  logoutClientThrottle,
  takeResetAttempt,
} from '../login/login-throttle.ts';
import { publicUser } from '../users/manage-users.ts';
import {
  beginEmailChange,
  beginOwnFactor,
  changeOwnPassword,
  confirmOwnFactor,
  endOtherSessions,
  endOwnSession,
  ownFactor,
  ownSessions,
  provePresence,
  removeOwnFactor,
  renewOwnRecoveryCodes,
} from '../login/own-account.ts';
import { csrfTokenOf, endSession, logInByPassword, requireOwnOrigin, secondFactorOf } from '../login/password-login.ts';
import {
  CodeBody,
  EmailBody,
  EmailLinkBody,
  FactorAnswer,
  FactorSetup,
  FactorState,
  InvitationBody,
  InvitedUser,
  LinkBody,
  LoginBody,
  PasswordBody,
  PresenceBody,
  RecoveryCodes,
  ResetBody,
  SessionAnswer,
  SessionId,
  SessionList,
  SessionsEnded,
} from '../schemas.ts';
import { startReset } from '../mail/send-link.ts';
import type { App } from '../../../app/declare/module.ts';
import { requiredModule } from '../../../app/declare/required-module.ts';
import type { Fault } from '../../../options/fault.ts';

/** An account is changed by the person at the browser: never by a key or an access token, whichever authenticators a wrapped route names. */
const bySession = new Permission({ name: 'bySession', evaluate: ({ principal }) => principal?.scheme === 'session' });
const own = { permission: all(isAuthenticated, bySession), auth: ['session'] } as const;
const ownAndPresent = { permission: all(isAuthenticated, bySession, hasRecentLogin), auth: ['session'] } as const;
/** Open to everybody: what a link or a typed name allows does not depend on who sends it. */
const open = { permission: allowAny, csrf: false, auth: [], metadata: { openWrite: 'proves itself by password, code or link' } } as const;

/** Password login, sessions, second factors and links for browsers. Mounted where the app likes: `'/account': AccountController`. */
export class AccountController extends Controller {
  static override readonly tags = ['account'];
  static readonly [controllerOptions] = {};

  login = route.post(
    '/login',
    {
      ...open,
      body: LoginBody,
      response: SessionAnswer,
      throttles: [loginClientThrottle],
      raises: [
        coreErrors.invalid_credentials,
        accountErrors.one_time_code_required,
        accountErrors.invalid_one_time_code,
        coreErrors.throttled,
        coreErrors.csrf_failed,
      ],
      summary: 'Log in with a password',
      description:
        'Sets the session cookie. A session the request already carries ends. With a second factor, send the same login again with `code`.',
    },
    (context) => logInByPassword(context, context.body),
  );

  logout = route.post(
    '/logout',
    {
      permission: allowAny,
      metadata: { openWrite: 'ends the session of its own cookie' },
      throttles: [logoutClientThrottle],
      summary: 'End the session',
      description: 'Idempotent. Also clears the cookie of an expired session.',
    },
    (context) => endSession(context),
  );

  me = route.get('/me', { response: SessionAnswer, permission: isAuthenticated, summary: 'Get the current user' }, async (context) => {
    const accounts = accountsOf(context.db);
    void context.reply.header('cache-control', 'no-store');
    return { user: publicUser(context.user), csrf_token: csrfTokenOf(context, accounts), second_factor: secondFactorOf(context) };
  });

  password = route.post(
    '/password',
    {
      ...ownAndPresent,
      body: PasswordBody,
      response: SessionAnswer,
      raises: [coreErrors.invalid_credentials, accountErrors.weak_password, coreErrors.throttled, coreErrors.recent_login_required],
      summary: 'Change your password',
      description: 'Every session of the user ends; the response sets the cookie of a new one.',
    },
    (context) => changeOwnPassword(context, context.body.current_password, context.body.new_password),
  );

  email = route.post(
    '/email',
    {
      ...ownAndPresent,
      body: EmailBody,
      status: 202,
      throttles: [emailChangeThrottle],
      raises: [accountErrors.mail_not_set_up, accountErrors.invalid_user, coreErrors.throttled, coreErrors.recent_login_required],
      summary: 'Ask for another e-mail address',
      description:
        'The new address gets a link, the old one a notice. The address changes when the link is used. Returns the same for every address.',
    },
    (context) => beginEmailChange(context, context.body.email),
  );

  confirmEmail = route.post(
    '/email/confirm',
    {
      ...open,
      body: EmailLinkBody,
      throttles: [linkClientThrottle],
      raises: [accountErrors.invalid_link, coreErrors.throttled, coreErrors.csrf_failed],
      summary: 'Confirm an e-mail address with a link',
    },
    async (context) => {
      requireOwnOrigin(context, accountsOf(context.db));
      await useEmailLink(context.db, context.body.token, { requestId: context.requestId });
    },
  );

  presence = route.post(
    '/presence',
    {
      ...own,
      body: PresenceBody,
      response: SessionAnswer,
      raises: [
        coreErrors.invalid_credentials,
        accountErrors.one_time_code_required,
        accountErrors.invalid_one_time_code,
        coreErrors.throttled,
      ],
      summary: 'Prove that you are there',
      description:
        'Needed within 10 minutes before a change of the password, the e-mail address or the second factor, and before creating an API key. The session gets a new cookie and CSRF token.',
    },
    (context) => provePresence(context, context.body),
  );

  sessions = route.get(
    '/sessions',
    { ...own, response: SessionList, summary: 'List your sessions, newest first', metadata: { boundedList: 'sessions of one user' } },
    async (context) => {
      void context.reply.header('cache-control', 'no-store');
      return { items: await ownSessions(context) };
    },
  );

  endSession = route.delete(
    '/sessions/:id',
    { ...own, params: SessionId, raises: [accountErrors.session_not_found], summary: 'End one of your sessions' },
    (context) => endOwnSession(context, context.params.id.toLowerCase()),
  );

  endOtherSessions = route.post(
    '/sessions/end-others',
    { ...own, response: SessionsEnded, summary: 'End all your other sessions' },
    async (context) => ({ ended: await endOtherSessions(context) }),
  );

  factor = route.get('/factor', { ...own, response: FactorState, summary: 'Read the state of your second factor' }, ({ db, user }) =>
    ownFactor({ db, user }),
  );

  beginFactor = route.post(
    '/factor',
    {
      ...ownAndPresent,
      response: FactorSetup,
      raises: [coreErrors.recent_login_required],
      summary: 'Begin to set up one-time codes',
      description: 'Add the secret to an authenticator app, then confirm it with a code. A factor that is in use stays in use until then.',
    },
    (context) => {
      void context.reply.header('cache-control', 'no-store');
      return beginOwnFactor(context);
    },
  );

  confirmFactor = route.post(
    '/factor/confirm',
    {
      ...ownAndPresent,
      body: CodeBody,
      response: FactorAnswer,
      raises: [
        accountErrors.no_pending_factor,
        accountErrors.invalid_one_time_code,
        coreErrors.throttled,
        coreErrors.recent_login_required,
      ],
      summary: 'Confirm one-time codes',
      description: 'Logins ask for a code from now on. Your other sessions end. The recovery codes are shown only here.',
    },
    (context) => confirmOwnFactor(context, context.body.code),
  );

  renewRecoveryCodes = route.post(
    '/factor/recovery-codes',
    {
      ...ownAndPresent,
      response: RecoveryCodes,
      raises: [accountErrors.no_second_factor, coreErrors.recent_login_required],
      summary: 'Replace your recovery codes',
    },
    async (context) => {
      void context.reply.header('cache-control', 'no-store');
      return { recovery_codes: await renewOwnRecoveryCodes(context) };
    },
  );

  removeFactor = route.delete(
    '/factor',
    {
      ...ownAndPresent,
      response: SessionAnswer,
      raises: [accountErrors.no_second_factor, coreErrors.recent_login_required],
      summary: 'Remove your second factor',
      description: 'Every session of the user ends; the response sets the cookie of a new one.',
    },
    (context) => removeOwnFactor(context),
  );

  reset = route.post(
    '/reset',
    {
      ...open,
      body: ResetBody,
      status: 202,
      throttles: [linkClientThrottle],
      raises: [accountErrors.mail_not_set_up, coreErrors.throttled, coreErrors.csrf_failed],
      summary: 'Ask for a link to set a new password',
      description: 'Returns the same for known and unknown users. Sent only to users who have a password and an e-mail address.',
    },
    async (context) => {
      requireOwnOrigin(context, accountsOf(context.db));
      await takeResetAttempt(context.body.login, accountsOf(context.db), context.clock.now());
      await startReset(context.db, context.body.login);
    },
  );

  confirmReset = route.post(
    '/reset/confirm',
    {
      ...open,
      body: LinkBody,
      throttles: [linkClientThrottle],
      raises: [accountErrors.invalid_link, accountErrors.weak_password, coreErrors.throttled, coreErrors.csrf_failed],
      summary: 'Set a new password with a link',
      description: 'The link, other links and all sessions of the user end. Log in with the new password afterwards.',
    },
    async (context) => {
      requireOwnOrigin(context, accountsOf(context.db));
      await useLink(context.db, 'reset', context.body.token, context.body.password, { requestId: context.requestId });
    },
  );

  invite = route.post(
    '/invitations',
    {
      permission: all(isStaff, bySession, hasRecentLogin),
      auth: ['session'],
      body: InvitationBody,
      response: InvitedUser,
      status: 202,
      raises: [
        accountErrors.sign_up_closed,
        accountErrors.mail_not_set_up,
        accountErrors.username_taken,
        accountErrors.email_taken,
        accountErrors.invalid_user,
        coreErrors.recent_login_required,
      ],
      summary: 'Invite a user by mail',
    },
    async ({ db, body, principal, requestId }) => {
      const accounts = accountsOf(db);
      if (accounts.settings.signUp === 'closed') throw accountErrors.sign_up_closed();
      return { user: publicUser(await inviteUser(db, body, accounts.management(principal, requestId))) };
    },
  );

  acceptInvitation = route.post(
    '/invitations/accept',
    {
      ...open,
      body: LinkBody,
      throttles: [linkClientThrottle],
      raises: [accountErrors.invalid_link, accountErrors.weak_password, coreErrors.throttled, coreErrors.csrf_failed],
      summary: 'Accept an invitation',
      description: 'Sets the first password. Log in with it afterwards.',
    },
    async (context) => {
      requireOwnOrigin(context, accountsOf(context.db));
      await useLink(context.db, 'invitation', context.body.token, context.body.password, { requestId: context.requestId });
    },
  );

  faults(app: App): readonly Fault[] {
    return requiredModule(app, 'accounts', this.constructor.name, 'accounts()');
  }
}
