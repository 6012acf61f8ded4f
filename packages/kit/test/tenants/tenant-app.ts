import { afterAll, beforeAll } from 'vitest';
import type { User } from '../../src/auth/index.ts';
import type { AppOptions } from '../../src/app/index.ts';
import { accounts, accountsOf, createUser } from '../../src/contrib/accounts/index.ts';
import { apiKeys } from '../../src/contrib/apikeys/index.ts';
import { audit } from '../../src/contrib/audit/index.ts';
import { TenantController, tenants, type TenantsOptions } from '../../src/contrib/tenants/index.ts';
import { createEndpoint, webhooks } from '../../src/contrib/webhooks/index.ts';
import { isAuthenticated } from '../../src/permissions/index.ts';
import { describeDatabases, fakeClock, type FakeClock, type TestDatabase } from '../../src/testing/index.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';
import { LOOPBACK } from '../webhooks/outbox.ts';

export interface Called {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever the server answered
  readonly body: any;
}

export interface TenantApp {
  readonly kit: TestApp;
  readonly database: TestDatabase;
  readonly clock: FakeClock;
  /** A new user with an address. */
  readonly person: (name: string) => Promise<User>;
  readonly call: (user: User | null, method: string, path: string, payload?: unknown, headers?: Record<string, string>) => Promise<Called>;
  /** A new tenant of the user. */
  readonly tenantOf: (user: User, fields?: object) => Promise<{ readonly id: string; readonly slug: string }>;
  /** Invites and accepts. Returns the id of the membership. */
  readonly join: (owner: User, tenant: string, user: User, roles: readonly string[]) => Promise<string>;
  /** The types of events that the tenant's endpoint gets, oldest first. */
  readonly events: (tenant: string) => Promise<readonly string[]>;
  readonly audited: (targetType: string) => Promise<readonly string[]>;
}

/** An app with accounts, API keys, audit, webhooks and tenants, and `/v1/tenants`. */
export function describeTenantApp(
  name: string,
  options: TenantsOptions,
  define: (app: TenantApp) => void,
  more: Omit<AppOptions, 'database' | 'log' | 'mount'> & { readonly mount?: AppOptions['mount'] } = {},
): void {
  describeDatabases(name, (database) => {
    const clock = fakeClock('2030-01-01T00:00:00.000Z');
    let kit: TestApp | undefined;
    const started = (): TestApp => {
      if (kit === undefined) throw new Error('not started yet');
      return kit;
    };
    beforeAll(async () => {
      const { mount = {}, modules = [], ...others } = more;
      kit = await testApp({
        database: database.db,
        clock,
        modules: [
          accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }),
          apiKeys(),
          audit(),
          webhooks({ urlPolicy: LOOPBACK }),
          tenants({ create: isAuthenticated, ...options }),
          ...modules,
        ],
        mount: { ...mount, '/v1': { '/tenants': TenantController, ...(mount['/v1'] as object) } },
        ...others,
      });
    });
    afterAll(() => kit?.close());
    const call: TenantApp['call'] = async (user, method, path, payload, headers = {}) => {
      const request = { method, url: `/v1${path}`, headers, ...(payload === undefined ? {} : { payload }) } as never;
      const { statusCode, body } = user === null ? await started().inject(request) : await started().as(user).inject(request);
      return { status: statusCode, body: body === '' ? undefined : JSON.parse(body) };
    };
    const must = async (status: number, called: Promise<Called>): Promise<Called['body']> => {
      const { status: found, body } = await called;
      if (found !== status)
        throw new Error(`${found} instead of ${status}: ${JSON.stringify(body)} ${JSON.stringify(started().records.at(-1)?.['err'])}`);
      return body;
    };
    define({
      clock,
      database,
      call,
      get kit() {
        return started();
      },
      person: (username) => {
        const { db } = started().app;
        return createUser(db, { username, email: `${username}@example.com` }, accountsOf(db).management(null));
      },
      async tenantOf(user, fields = {}) {
        const made = await must(201, call(user, 'POST', '/tenants', { name: `Tenant of ${user.username}`, ...fields }));
        const { db } = started().app;
        await createEndpoint(db, { owner: user.id, tenantKey: made.id, url: 'http://127.0.0.1:9/', events: ['*'] });
        return made;
      },
      async join(owner, tenant, user, roles) {
        const { token } = await must(201, call(owner, 'POST', `/tenants/${tenant}/invitations`, { email: user.email, roles }));
        await must(200, call(user, 'POST', '/tenants/invitations/accept', { token }));
        const { items } = await must(200, call(owner, 'GET', `/tenants/${tenant}/members?limit=100`));
        return items.find((each: { user_id: string }) => each.user_id === user.id).id;
      },
      async events(tenant) {
        const rows = await database.db.query<{ type: string }>('select type from webhook_events where tenant_key = $1 order by id', [
          tenant,
        ]);
        return rows.map(({ type }) => type);
      },
      async audited(targetType) {
        const rows = await database.db.query<{ action: string }>(
          `select action from (select id, action, target_type from audit_inbox union all select id, action, target_type from audit_entries) e
           where target_type = $1 order by id`,
          [targetType],
        );
        return rows.map(({ action }) => action);
      },
    });
  });
}
