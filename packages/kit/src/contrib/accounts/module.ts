import type { Module } from '../../app/index.ts';
import { value } from '../../di/index.ts';
import { Accounts, accountsService } from './accounts.ts';
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
  const installed = new Accounts(readAccountsOptions(options, accountsEnvironment()));
  return {
    name: 'accounts',
    models: [users, sessions],
    migrations: [initial],
    authenticators: [sessionAuthenticator({ settings: installed.settings, clock: () => installed.clock, log: () => installed.log })],
    users: accountsDirectory,
    services: [value(accountsService, installed)],
    errors: accountErrors,
    commands: [userCommand(installed)],
    admin: accountsAdmin(installed),
    install: (app) => installed.installIn(app),
  };
}
