import type { Module } from '../../app/module.ts';
import type { Database } from '../../db/db.ts';
import type { Counter } from '../../observe/metric-registry.ts';
import { accountsIn, accountsState, LOGIN_OUTCOMES } from './accounts.ts';
import { accountsAdmin } from './admin.ts';
import { userCommand } from './commands.ts';
import { groupCommand } from './group-commands.ts';
import { accountsGroups } from './groups.ts';
import { accountsEnvironment } from './config.ts';
import { accountErrors } from './errors.ts';
import { initial } from './migrations/0001_initial.ts';
import { groupTables } from './migrations/0002_groups.ts';
import { groupMembers, groups, sessions, users } from './models.ts';
import { readAccountsOptions, type AccountsOptions } from './options.ts';
import { sessionAuthenticator } from './session-authenticator.ts';
import { accountsDirectory } from './user-directory.ts';

/** Users, groups, passwords and browser sessions. Mount AccountController to log in over HTTP. */
export function accounts(options: AccountsOptions = {}): Module {
  const settings = readAccountsOptions(options, accountsEnvironment());
  let database: Database | undefined;
  let logins: Counter<'outcome'> | undefined;
  return {
    name: 'accounts',
    models: [users, sessions, groups, groupMembers],
    migrations: [initial, groupTables],
    authenticators: [sessionAuthenticator(settings)],
    users: accountsDirectory,
    errors: accountErrors,
    commands: [userCommand, groupCommand],
    provides: () => ({ groups: accountsGroups }),
    admin: accountsAdmin(),
    metrics(registry) {
      logins = registry.counter({
        name: 'kit_accounts_logins_total',
        help: 'Logins by password, by outcome.',
        labels: { outcome: LOGIN_OUTCOMES },
      });
    },
    setup(app) {
      accountsState.bind(app.db, accountsIn(app, settings, logins));
      database = app.db;
    },
    stop() {
      if (database !== undefined) accountsState.release(database);
    },
  };
}
