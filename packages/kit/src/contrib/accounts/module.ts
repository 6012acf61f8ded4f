import type { Module } from '../../app/declare/module.ts';
import { StartUpError } from '../../app/check/start-up-error.ts';
import type { Database } from '../../db/engine/db.ts';
import type { HealthContext } from '../../middleware/health.ts';
import { accountsIn, type AccountsMetrics, accountsState, CODE_OUTCOMES, LOGIN_OUTCOMES, MAIL_OUTCOMES } from './users/accounts.ts';
import { accountsAdmin } from './admin.ts';
import { userCommand } from './commands.ts';
import { groupCommand } from './serve/group-commands.ts';
import { accountsGroups } from './users/groups.ts';
import { accountsEnvironment } from './config.ts';
import { accountSecretFault, accountSecretFaults } from './factors/factor-secrets.ts';
import { accountErrors } from './errors.ts';
import { initial } from './migrations/0001_initial.ts';
import { accountRoutes } from './serve/account-routes.ts';
import { accountsLogin } from './serve/login-provider.ts';
import { accountsIdentities } from './login/identities.ts';
import { accountsRegistration } from './login/registration.ts';
import { storedMailFaults } from './mail/mail.ts';
import { mailHealth } from './mail/mail-health.ts';
import { accountLinks, groupMembers, groups, sessions, userFactors, userIdentities, userRecoveryCodes, users } from './models.ts';
import { readAccountsOptions, type AccountsOptions } from './options.ts';
import { sendLink } from './mail/send-link.ts';
import { accountsSessionTenants } from './sessions/chosen-tenant.ts';
import { sessionAuthenticator } from './sessions/session-authenticator.ts';
import { groupResource } from './serve/group-resource.ts';
import { userResource } from './serve/user-resource.ts';
import { usersWithoutLogin } from './users/users-without-login.ts';
import { accountsDirectory } from './users/user-directory.ts';

/**
 * Users, groups, passwords and browser sessions. Mount AccountController to log in over HTTP.
 *
 * @example
 * ```ts
 * createApp({ modules: [accounts()], mount: { '/v1': { '/account': AccountController } } });
 * ```
 */
export function accounts(options: AccountsOptions = {}): Module {
  const settings = readAccountsOptions(options, accountsEnvironment());
  let database: Database | undefined;
  let metrics: AccountsMetrics | undefined;
  return {
    name: 'accounts',
    models: [users, sessions, userFactors, userRecoveryCodes, accountLinks, userIdentities, groups, groupMembers],
    // Mail is sent by a job, so that none is lost and none is sent for what was rolled back.
    ...(settings.mail === null ? {} : { requires: ['jobs'], jobs: [sendLink] }),
    migrations: [initial],
    authenticators: [sessionAuthenticator(settings)],
    users: accountsDirectory,
    login: accountsLogin,
    errors: accountErrors,
    commands: [userCommand, groupCommand],
    checks: [
      { name: 'account_secrets', run: accountSecretFaults },
      { name: 'account_mail', run: () => storedMailFaults(settings.mail) },
    ],
    provides: () => ({
      groups: accountsGroups,
      identities: accountsIdentities,
      sessionTenants: accountsSessionTenants,
      accountRoutes: accountRoutes(settings),
      usersWithoutLogin,
      ...(settings.signUp === 'invitation' ? { registration: accountsRegistration } : {}),
    }),
    resources: [userResource, groupResource],
    admin: accountsAdmin(settings),
    ...(settings.mail === null ? {} : { healthChecks: { mail: ({ databases }: HealthContext) => mailHealth(databases['default']) } }),
    metrics(registry) {
      const [logins, codes, mails] = [
        { name: 'kit_accounts_logins_total', help: 'Logins by password, by outcome.', labels: { outcome: LOGIN_OUTCOMES } },
        { name: 'kit_accounts_codes_total', help: 'One-time and recovery codes, by outcome.', labels: { outcome: CODE_OUTCOMES } },
        { name: 'kit_accounts_mails_total', help: 'Attempts to send a mail, by outcome.', labels: { outcome: MAIL_OUTCOMES } },
      ].map((each) => registry.counter(each)) as [AccountsMetrics['logins'], AccountsMetrics['codes'], AccountsMetrics['mails']];
      metrics = { logins, codes, mails };
    },
    setup(app) {
      const fault = accountSecretFault(app.settings.accountSecretKeys);
      if (fault !== null) throw new StartUpError([fault]);
      accountsState.bind(app.db, accountsIn(app, settings, metrics));
      database = app.db;
    },
    stop() {
      if (database !== undefined) accountsState.release(database);
    },
  };
}
