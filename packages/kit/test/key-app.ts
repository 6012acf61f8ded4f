import { Writable } from 'node:stream';
import { createApp, type App, type AppOptions } from '../src/app/index.ts';
import { coreTables } from '../src/app/data/migration-modules.ts';
import { accounts } from '../src/contrib/accounts/index.ts';
import { accountsDirectory } from '../src/contrib/accounts/users/user-directory.ts';
import { accountsOf } from '../src/contrib/accounts/users/accounts.ts';
import { createUser } from '../src/contrib/accounts/users/manage-users.ts';
import { ApiKeyController, ApiKeyRateThrottle, apiKeys, createApiKey, currentApiKey } from '../src/contrib/apikeys/index.ts';
import type { ApiKeyOptions } from '../src/contrib/apikeys/index.ts';
import type { AuthRequest, Authenticator, User } from '../src/auth/index.ts';
import { migrate, type Database, type MigrationModule } from '../src/db/index.ts';
import { Controller, route } from '../src/http/index.ts';
import { jsonSchema } from '../src/http/declare/json-schema.ts';
import { allowAny, hasScopes, isAuthenticated, requiresScope } from '../src/permissions/index.ts';
import { memoryStorage } from '../src/throttle/index.ts';
import { fakeClock, type FakeClock } from '../src/testing/fake-clock.ts';

const Answer = jsonSchema<Record<string, unknown>>({ type: 'object' });

/** One route per column of the seed's truth table, and one of each special case. */
export class ScopedController extends Controller {
  readOrders = route.get('/orders', { ...requiresScope('orders:read'), permission: hasScopes(), response: Answer }, () => ({ ok: true }));
  writeOrders = route.post('/orders', { ...requiresScope('orders:write'), permission: hasScopes(), response: Answer }, () => ({
    ok: true,
  }));
  readInvoices = route.get('/invoices', { scope: 'invoices:read', permission: hasScopes(), response: Answer }, () => ({ ok: true }));
  unscopedToo = route.get('/reports', { scope: 'reports:read', permission: hasScopes({ allowUnscoped: true }), response: Answer }, () => ({
    ok: true,
  }));
  anyKey = route.get('/plain', { permission: hasScopes(), response: Answer }, () => ({ ok: true }));
  open = route.get('/open', { permission: allowAny, response: Answer }, ({ user }) => ({ user: user?.username ?? null }));
  whoAmI = route.get('/whoami', { permission: isAuthenticated, response: Answer }, (context) => ({
    user: context.user.username,
    scheme: context.principal.scheme,
    key: currentApiKey(context)?.prefix ?? null,
    key_by_request: currentApiKey(context.request)?.prefix ?? null,
  }));
  limited = route.get('/limited', { permission: isAuthenticated, throttles: [ApiKeyRateThrottle('3/min')], response: Answer }, () => ({
    ok: true,
  }));
}

/** Logs a person in by naming them, where tests are not about sessions. */
const actAs: Authenticator = {
  name: 'act_as',
  securityScheme: { type: 'http', scheme: 'act-as' },
  async authenticate({ headers, db }: AuthRequest) {
    const username = headers['x-act-as'];
    if (typeof username !== 'string') return null;
    const user = await accountsDirectory.findByLogin(db, username);
    return user?.is_active === true ? { user, scheme: 'session', scopes: null } : null;
  },
};

export async function prepareAccountsAndKeys(db: Database): Promise<void> {
  await migrate(db, [coreTables, accounts(), apiKeys()] as readonly MigrationModule[]);
}

export interface Called {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever the server answered
  readonly body: any;
  readonly headers: Readonly<Record<string, string | string[] | number | undefined>>;
}

export interface KeyApp {
  readonly app: App;
  readonly db: Database;
  readonly clock: FakeClock;
  /** Every line of the app's log, at the most talkative level. */
  readonly log: string[];
  user(username: string, flags?: { readonly is_staff?: boolean }): Promise<User>;
  key(
    user: User,
    input?: { scopes?: string[]; expiresAt?: Date | null; rateLimit?: string | null },
  ): Promise<{ id: string; raw: string; prefix: string }>;
  call(method: string, url: string, headers?: Record<string, string>, payload?: unknown): Promise<Called>;
}

/** A whole app on this database, mounted under /v1: `/api-keys` and the scoped routes. */
export async function startKeyApp(
  db: Database,
  options: {
    readonly keys?: ApiKeyOptions;
    readonly controller?: typeof ApiKeyController;
    readonly app?: Partial<AppOptions>;
    readonly modules?: NonNullable<AppOptions['modules']>;
    readonly clock?: FakeClock;
  } = {},
): Promise<KeyApp> {
  const clock = options.clock ?? fakeClock('2030-01-01T00:00:00.000Z');
  const log: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      log.push(String(chunk));
      done();
    },
  });
  const { default: pino } = await import('pino');
  const { mount, ...rest } = options.app ?? {};
  const app = createApp({
    database: db,
    modules: [accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }), apiKeys(options.keys), ...(options.modules ?? [])],
    mount: { '/v1': { '/api-keys': options.controller ?? ApiKeyController, '/': ScopedController }, ...mount },
    authenticators: [actAs],
    throttleStorage: memoryStorage(),
    log: pino({ level: 'trace' }, stream),
    clock,
    ...rest,
  });
  await app.ready();
  const management = accountsOf(app.db).management(null);
  return {
    app,
    db,
    clock,
    log,
    user: (username, flags = {}) => createUser(db, { username, password: null, ...flags }, management),
    async key(user, input = {}) {
      const { apiKey, raw } = await createApiKey(db, { user, name: 'test', scopes: [], ...input });
      return { id: apiKey.id, raw, prefix: apiKey.prefix };
    },
    async call(method, url, headers = {}, payload) {
      const response = await app.inject({
        method: method as 'GET',
        url,
        headers,
        ...(payload === undefined ? {} : { payload: payload as object }),
      });
      return { status: response.statusCode, body: response.body === '' ? undefined : response.json(), headers: response.headers };
    },
  };
}
