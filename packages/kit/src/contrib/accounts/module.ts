import type { Module } from '../../app/index.ts';
import type { Database } from '../../db/db.ts';
import { accountsIn, accountsState } from './accounts.ts';
import { accountsAdmin } from './admin.ts';
import { userCommand } from './commands.ts';
import { accountsEnvironment } from './config.ts';
import { accountErrors } from './errors.ts';
import { initial } from './migrations/0001_initial.ts';
import { sessions, users } from './models.ts';
import { readAccountsOptions, type AccountsOptions } from './options.ts';
import { sessionAuthenticator } from './session-authenticator.ts';
import { accountsDirectory } from './user-directory.ts';

/** Users, passwords and browser sessions. Mount AccountController to log in over HTTP. */
export function accounts(options: AccountsOptions = {}): Module {
  const settings = readAccountsOptions(options, accountsEnvironment());
  let database: Database | undefined;
  return {
    name: 'accounts',
    models: [users, sessions],
    migrations: [initial],
    authenticators: [sessionAuthenticator(settings)],
    users: accountsDirectory,
    errors: accountErrors,
    commands: [userCommand],
    admin: accountsAdmin(),
    setup(app) {
      accountsState.bind(app.db, accountsIn(app, settings));
      database = app.db;
    },
    stop() {
      if (database !== undefined) accountsState.release(database);
    },
  };
}
