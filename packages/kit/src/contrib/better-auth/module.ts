import { getCookies } from 'better-auth/cookies';
import type { LoginProvider } from '../../app/declare/login-provider.ts';
import type { App, Module } from '../../app/declare/module.ts';
import type { UserSource } from '../../auth/people/user-directory.ts';
import type { Database } from '../../db/engine/db.ts';
import type { Fault } from '../../options/fault.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import { organizationCommand, userCommand } from './commands.ts';
import { authController, signOut } from './controller.ts';
import { basePathOf, type BetterAuthInstance, type InstanceContext, optionsOf, pluginOf } from './instance.ts';
import { betterAuthAdmin } from './admin.ts';
import { configurationFaults, connectionFaults, schemaFaults, versionFaults } from './instance-faults.ts';
import { initial } from './migrations/0001_initial.ts';
import { scim } from './migrations/0002_scim.ts';
import { memberChangesTable } from './migrations/0003_member_changes.ts';
import { suspensionsTable } from './migrations/0004_suspensions.ts';
import { invitationsView } from './migrations/0005_invitations.ts';
import { memberChanges, suspensions, usedCodes, userChanges } from './models.ts';
import { type BetterAuthOptions, readBetterAuthOptions } from './options.ts';
import { organizationTenants } from './organizations.ts';
import { pageRoutes } from './page-routes.ts';
import { usersWithoutLogin } from './service-users.ts';
import { hasTwoFactors } from './store.ts';
import { bearerAuthenticator, cookieAuthenticator } from './sessions.ts';
import { removeUser, userRows } from './user-rows.ts';
import { betterAuthState, passOnChanges, passOnJob } from './user-changes.ts';

const users: UserSource = {
  table: {
    name: 'better_auth_users',
    id: 'id',
    username: 'username',
    email: 'email',
    isActive: 'is_active',
    isStaff: 'is_staff',
    isSuperuser: 'is_superuser',
    idType: 'text',
  },
};

/**
 * A better-auth instance as the login of the app: its users, its sessions, its organizations as tenants, its role `admin` as staff, its routes under
 * its base path. The instance needs `kitPlugin()` and `joinedKysely(db)`. Needs the packages `better-auth` and `kysely`.
 */
export function betterAuth(auth: BetterAuthInstance, options: BetterAuthOptions = {}): Module {
  const settings = readBetterAuthOptions(auth, options);
  const instance = optionsOf(auth);
  const cookieName = getCookies(instance as Parameters<typeof getCookies>[0]).sessionToken.name;
  let database: Database | undefined;
  let running: InstanceContext | undefined;
  const context = (): InstanceContext => {
    if (running === undefined) throw new Error('betterAuth() is used before the app is ready.');
    return running;
  };
  const loginProvider: LoginProvider = {
    authenticators: ['session'],
    ...(settings.loginUrl === null ? {} : { loginUrl: settings.loginUrl }),
    ...(settings.accountUrl === null ? {} : { accountUrl: settings.accountUrl }),
    // A user with a second factor gets no session without it.
    hasSecondFactor: async ({ db, principal }) =>
      principal !== null && pluginOf(instance, 'two-factor') !== undefined && (await hasTwoFactors(db, principal.user.id)),
    logOut: ({ request, reply }) => signOut(auth, context(), exchangeOf(request), reply),
  };
  return {
    name: 'better_auth',
    models: [userChanges, memberChanges, usedCodes, suspensions],
    migrations: [initial, scim, memberChangesTable, suspensionsTable, invitationsView],
    users: { ...users, exportUser: (db, id) => userRows(db, context(), id), removeUser: (tx, id) => removeUser(tx, context(), id) },
    tenants: organizationTenants(settings),
    authenticators: [
      cookieAuthenticator(context, cookieName, settings),
      ...(pluginOf(instance, 'bearer') === undefined ? [] : [bearerAuthenticator(context, settings)]),
    ],
    login: loginProvider,
    provides: () => ({ ...pageRoutes(instance), usersWithoutLogin: usersWithoutLogin(context) }),
    mount: { [basePathOf(instance)]: authController(auth, context, settings) },
    admin: betterAuthAdmin(instance),
    jobs: [passOnJob],
    commands: [userCommand(auth, context), organizationCommand],
    checks: [{ name: 'better_auth', run: (app) => faultsOf(auth, context(), app) }],
    async setup(app) {
      running = (await auth.$context) as InstanceContext;
      const { log, registry, db } = app;
      if (app.users !== null) betterAuthState.bind(db, { app, log, registry, users: app.users });
      database = db;
    },
    async start({ log, db }) {
      try {
        await passOnChanges(db);
      } catch (error) {
        log.error({ err: error }, 'could not notify the modules of changed users and members');
      }
    },
    stop() {
      if (database !== undefined) betterAuthState.release(database);
      database = undefined;
    },
  };
}

async function faultsOf(auth: BetterAuthInstance, context: InstanceContext, { db }: App): Promise<readonly Fault[]> {
  const connection = connectionFaults(optionsOf(auth), db);
  const declared = [...connection, ...versionFaults(context), ...configurationFaults(optionsOf(auth), context)];
  return connection.length > 0 ? declared : [...declared, ...(await schemaFaults(auth, context, db))];
}
