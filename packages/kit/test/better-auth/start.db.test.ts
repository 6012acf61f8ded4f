import { scim } from '@better-auth/scim';
import { betterAuth as createAuth, type BetterAuthOptions as InstanceOptions, type BetterAuthPlugin } from 'better-auth';
import { anonymous, bearer, jwt, organization, phoneNumber, username } from 'better-auth/plugins';
import { getMigrations } from 'better-auth/db/migration';
import pino from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { type App, createApp, migrateApp, StartUpError } from '../../src/app/index.ts';
import { accounts } from '../../src/contrib/accounts/index.ts';
import { betterAuth, kitPlugin } from '../../src/contrib/better-auth/index.ts';
import { versionFaults } from '../../src/contrib/better-auth/instance-faults.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { instanceOptions, startAuthApp, WhoController } from './auth-app.ts';
import { shapeAfter } from './table-shape.ts';

type Options = ReturnType<typeof instanceOptions>;

describeDatabases('the start of an app with better-auth', (database) => {
  let open: App | undefined;
  afterEach(async () => {
    await open?.close();
    open = undefined;
  });

  const faultsWith = async (
    instance: (options: Options) => InstanceOptions,
  ): Promise<readonly { id: string; message: string; hint?: string | undefined }[]> => {
    try {
      open = (await startAuthApp(await database.open(), { instance })).app;
      return [];
    } catch (error) {
      if (error instanceof StartUpError) return error.faults;
      throw error;
    }
  };

  describe('the migrations create what the package itself would create', () => {
    const everything = (options: Options): InstanceOptions => ({
      ...options,
      rateLimit: { storage: 'database' },
      plugins: [
        ...options.plugins.slice(1),
        organization({ teams: { enabled: true }, dynamicAccessControl: { enabled: true } }),
        jwt(),
        username(),
        phoneNumber(),
        anonymous(),
        scim({
          connections: [],
          managedConnections: { credentialHashSecret: 'a-secret-of-forty-characters-for-tests!!' },
        }) as BetterAuthPlugin,
      ],
    });

    test('nothing is missing by its own measure', async () => {
      const started = await startAuthApp(await database.open(), { instance: everything });
      open = started.app;
      const { toBeCreated, toBeAdded } = await getMigrations(started.auth.options);
      expect(toBeCreated).toEqual([]);
      expect(toBeAdded).toEqual([]);
    });

    test('columns have its types, and the unique and indexed ones are', async () => {
      const db = await database.open();
      const { compileMigrations } = await getMigrations(createAuth(everything(instanceOptions(db))).options);
      const statements = (await compileMigrations()).split(';').flatMap((statement) => statement.trim() || []);
      const wanted = await shapeAfter(db, statements);
      open = (await startAuthApp(db, { instance: everything })).app;
      const created = await shapeAfter(db, []);
      expect(wanted.columns.length).toBeGreaterThan(150);
      expect(wanted.indexes.length).toBeGreaterThan(50);
      expect(wanted.columns.filter((each) => !created.columns.includes(each))).toEqual([]);
      expect(wanted.indexes.filter((each) => !created.indexes.includes(each))).toEqual([]);
    });
  });

  describe('is refused, with the remedy, for', () => {
    const refused: readonly (readonly [string, (options: Options) => InstanceOptions, string, RegExp, RegExp])[] = [
      ['no baseURL', (options) => ({ ...options, baseURL: undefined }), 'E031', /baseURL is missing/, /Set baseURL/],
      [
        'a baseURL of the request',
        (options) => ({ ...options, baseURL: { allowedHosts: ['a.example.com'] } }),
        'E031',
        /depends on the request/,
        /Set one URL/,
      ],
      [
        'sessions outside of the database',
        (options) => ({ ...options, secondaryStorage: { get: () => null, set: () => undefined, delete: () => undefined } as never }),
        'E031',
        /secondaryStorage/,
        /storeSessionInDatabase: true/,
      ],
      [
        'bearer tokens without signature',
        (options) => ({ ...options, plugins: [bearer(), kitPlugin()] }),
        'E031',
        /bearer\(\)/,
        /requireSignature: true/,
      ],
      [
        'sessions that survive a reset',
        (options) => ({ ...options, emailAndPassword: { enabled: true } }),
        'E031',
        /survive/,
        /revokeSessionsOnPasswordReset: true/,
      ],
      [
        'a disabled origin check',
        (options) => ({ ...options, advanced: { ...options.advanced, disableOriginCheck: true } }),
        'E031',
        /origin check/,
        /Remove/,
      ],
      [
        'the origin check that NODE_ENV=test disables',
        (options) => ({ ...options, advanced: { database: { validateSchema: false } } }),
        'E031',
        /NODE_ENV is test/,
        /disableOriginCheck: false/,
      ],
      [
        'a disabled CSRF check',
        (options) => ({ ...options, advanced: { ...options.advanced, disableCSRFCheck: true } }),
        'E031',
        /CSRF/,
        /Remove/,
      ],
      [
        'a schema check before the migrations',
        (options) => ({ ...options, advanced: { disableOriginCheck: false } }),
        'E031',
        /before `kit migrate`/,
        /validateSchema: false/,
      ],
      [
        'ids that are not text',
        (options) => ({ ...options, advanced: { ...options.advanced, database: { validateSchema: false, generateId: 'serial' } } }),
        'E031',
        /generateId/,
        /Remove/,
      ],
      [
        'renamed columns',
        (options) => ({ ...options, user: { fields: { email: 'mail' } } }),
        'E031',
        /user\.email → mail/,
        /Remove modelName and fields/,
      ],
      ['the default secret', (options) => ({ ...options, secret: undefined }), 'E031', /default of the package/, /Set secret/],
      ['no kitPlugin()', (options) => ({ ...options, plugins: [] }), 'E033', /plugin of the toolkit/, /kitPlugin\(\)/],
      ['a connection of its own', (options) => ({ ...options, database: undefined }), 'E033', /joinedKysely/, /joinedKysely\(db\)/],
      [
        'writes without transactions',
        (options) => ({ ...options, database: { ...options.database, transaction: false } }),
        'E033',
        /database\.transaction/,
        /transaction: true/,
      ],
    ];
    test.each(refused)('%s', async (_name, instance, id, message, hint) => {
      const faults = await faultsWith(instance);
      expect(faults.map((fault) => fault.id)).toContain(id);
      const fault = faults.find((each) => message.test(each.message));
      expect(fault?.id).toBe(id);
      expect(fault?.hint).toMatch(hint);
    });

    test('another database than that of the app', async () => {
      const other = await database.open();
      const faults = await faultsWith((options) => ({ ...options, database: instanceOptions(other).database }));
      expect(faults).toMatchObject([{ id: 'E033', message: expect.stringContaining('not the default database') }]);
    });

    test('a plugin without its tables: the statements are in the remedy', async () => {
      const extra = { id: 'extra', schema: { parcel: { fields: { label: { type: 'string' as const, required: true } } } } };
      const faults = await faultsWith((options) => ({ ...options, plugins: [...options.plugins, extra] }));
      expect(faults).toMatchObject([{ id: 'E032', hint: expect.stringMatching(/create table "parcel"/) }]);
    });

    test('accounts() beside it: one login for an app', async () => {
      const db = await database.open();
      const auth = createAuth(instanceOptions(db) as InstanceOptions);
      expect(() =>
        createApp({ database: db, modules: [betterAuth(auth), accounts()], mount: { '/v1': { '/who': WhoController } } }),
      ).toThrow(/both provide users/);
    });
  });

  test('a plugin that exempts its own paths from the origin check, as @better-auth/sso does, is not refused', async () => {
    const sso = { id: 'sso', init: () => ({ context: { skipOriginCheck: ['/sso/saml2/sp/acs'] } }) };
    expect(await faultsWith((options) => ({ ...options, plugins: [...options.plugins, sso as BetterAuthPlugin] }))).toEqual([]);
    const { statusCode } = await (open as App).inject({
      method: 'POST',
      url: '/auth/update-user',
      headers: { cookie: 'a=b', origin: 'https://evil.example', 'content-type': 'application/json' },
      payload: '{"name":"x"}',
    });
    expect(statusCode).toBe(403);
  });

  test('an unknown version says so when the app starts', async () => {
    const db = await database.open();
    const auth = createAuth(instanceOptions(db) as InstanceOptions);
    const newer = { ...auth, $context: auth.$context.then((context) => ({ ...context, version: '1.7.99' })) };
    const lines: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    open = createApp({ database: db, modules: [betterAuth(newer)], mount: { '/v1': { '/who': WhoController } }, log });
    await migrateApp(open);
    await open.start();
    expect(lines.filter((line) => line.includes('W024'))).toHaveLength(1);
    expect(lines.join('')).toContain('version 1.7.99 was not tested');
  });

  test('a database without tables starts no comparison that would be remembered', async () => {
    const db = await database.open();
    const auth = createAuth(instanceOptions(db) as InstanceOptions);
    const app = createApp({
      database: db,
      modules: [betterAuth(auth)],
      mount: { '/v1': { '/who': WhoController } },
      log: { level: 'silent' },
    });
    open = app;
    await migrateApp(app);
    await app.ready();
    expect((await app.inject('/auth/ok')).statusCode).toBe(200);
  });
});

describe('a version of better-auth', () => {
  test.each([
    ['1.7.4', []],
    ['1.7.7', []],
    ['1.7.22', ['W024']],
    ['1.8.0', ['W024']],
    ['2.0.0', ['W024']],
    ['1.7.8-beta.1', ['W024']],
    ['1.7.3', ['E031']],
    ['1.6.34', ['E031']],
  ])('%s: %j', (version, ids) => {
    const faults = versionFaults({ version });
    expect(faults.map(({ id }) => id)).toEqual(ids);
    for (const { message, hint } of faults) expect([message, hint].join(' ')).toMatch(/Install better-auth 1\.7\.7/);
  });
});
