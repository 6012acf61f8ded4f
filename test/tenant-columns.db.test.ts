import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { allowAny, Controller, hasScopes, type AppOptions, type Module } from 'kit';
import { AccountController, accounts, users } from 'kit/contrib/accounts';
import { ApiKeyController, apiKeys } from 'kit/contrib/apikeys';
import { audit, AuditController } from 'kit/contrib/audit';
import { grants, grant, objectActions, objectGrants, sharing } from 'kit/contrib/grants';
import { job, JobController, jobs, runDueJobs, startJob } from 'kit/contrib/jobs';
import { mcp } from 'kit/contrib/mcp';
import { metrics } from 'kit/contrib/metrics';
import { diskStore, UploadController, uploads } from 'kit/contrib/uploads';
import { publish, WebhookEndpointController, webhooks } from 'kit/contrib/webhooks';
import { CrudController, resource } from 'kit/crud';
import { createTable, insert, migration, model, t, type Model } from 'kit/db';
import { describeDatabases, testApp, type TestApp } from 'kit/testing';
import { z } from 'zod';
import { root } from './architecture/module-graph.ts';

// Every table of a module that has a column for the tenant is read by tenant: each route over it is tried by its owner in another tenant, without a tenant
// and after leaving. A new table needs an entry in `covered` or `unrouted`, a new controller one in `controllers` or `tenantless`,
// and a new route that needs a body one in `bodies`.

const [ADA, BOB] = ['01890000-0000-7000-8000-00000000000a', '01890000-0000-7000-8000-00000000000b'];

const columns = { id: t.uuidv7().pk(), team: t.text(40).readOnly(), title: t.text(80) };
const indexes = { indexes: [{ columns: ['team', '-id'] }] };
const papers = model('papers', columns, indexes);
const paperActions = objectActions(papers, {
  actions: ['view', 'change', 'delete', 'share'],
  sets: { viewer: ['view'], manager: ['viewer', 'change', 'delete', 'share'] },
  creator: 'manager',
});
const paperResource = resource(papers, { tenant: 'team', access: grants(papers) });
const permission = hasScopes({ allowUnscoped: true });
class Papers extends sharing(CrudController(paperResource, { permission })) {}
class TeamHooks extends WebhookEndpointController {
  static override readonly tenantField = 'tenant_key';
}
const work = job('work', { input: z.object({}), run: () => undefined });
const tables: Module = {
  name: 'papers',
  models: [papers],
  migrations: [migration('0001_initial', [createTable('papers', columns, indexes)])],
};

/** The controllers over tables with a tenant, and where they are mounted. */
const controllers = { '/jobs': JobController, '/uploads': UploadController, '/hooks': TeamHooks, '/papers': Papers };
/** Controllers of modules over tables without a tenant. */
const tenantless: Readonly<Record<string, string>> = {
  AccountController: 'users and sessions belong to no tenant',
  ApiKeyController: 'users manage their keys of every tenant; where a key acts is in packages/kit/src/contrib/tenants/keys.db.test.ts',
  TenantWebhookController: 'its rules are those of TeamHooks, and a role: see packages/kit/src/contrib/tenants/webhooks.db.test.ts',
  ServiceUserController: 'the managers of a tenant alone: its twins are in packages/kit/test/tenants/service-users.db.test.ts',
  TenantController: 'tenants are named by the path: see packages/kit/src/contrib/tenants/members.db.test.ts',
  RequestController: 'every request adds a row: its twins are in packages/kit/src/contrib/requests/requests.db.test.ts',
  QuotaController: 'as RequestController: packages/kit/src/contrib/requests/quotas.db.test.ts',
  UsageController: 'as RequestController',
  TenantAuditController: 'those who manage a tenant read its entries: packages/kit/src/contrib/tenants/audit.db.test.ts',
  PersonalDataController: 'a person has one account, whatever the tenants',
  AuditController: 'only staff reads the log, in every tenant',
};
/** Tables with a tenant that a route reads, by the name of the parameter that its rows fill. */
const covered: Readonly<Record<string, keyof typeof controllers>> = {
  jobs: '/jobs',
  uploads: '/uploads',
  webhook_endpoints: '/hooks',
  webhook_events: '/hooks',
  grants: '/papers',
};
/** Tables with a tenant that no route reads. */
const unrouted: Readonly<Record<string, string>> = {
  audit_entries: 'read by those who manage the tenant: packages/kit/src/contrib/tenants/audit.db.test.ts',
  audit_inbox: 'entries on their way to audit_entries',
  service_users: 'see ServiceUserController',
  api_keys: 'users manage their keys of every tenant: see ApiKeyController',
  groups: 'managed in the admin site and by commands',
  sessions: 'the tenant that a person has chosen; only the own sessions are listed, without it',
  upload_removals: 'read by the clean-up',
  upload_owners: 'locked when an upload is created',
  webhook_subscriptions: 'read when an event is published; shown as a field of the endpoint',
  webhook_subscription_periods: 'read when an endpoint recovers',
};
/** Of routes that do not take an empty body. */
const bodies: Readonly<Record<string, unknown>> = {
  'POST /hooks/:id/recover': { since: '2026-01-01T00:00:00Z' },
  'PUT /papers/:id': { title: 'New' },
  'PATCH /papers/:id': { title: 'New' },
  'POST /uploads/:id/parts': { parts: [] },
  'PUT /papers/:id/grants': { items: [{ subject: `user:${ADA}`, set: 'manager' }] },
};

const members = new Map([
  [ADA, new Set(['north', 'south'])],
  [BOB, new Set(['north'])],
]);
const headerOf = (headers: Readonly<Record<string, unknown>>): string | null =>
  typeof headers['x-team'] === 'string' ? headers['x-team'] : null;
const memberships: Readonly<Record<string, Pick<AppOptions, 'tenant' | 'membership'>>> = {
  'a resolver that proves the membership': {
    tenant: ({ headers, user }) => {
      const team = headerOf(headers);
      return user !== null && team !== null && members.get(user.id)?.has(team) === true ? team : null;
    },
  },
  'createApp({ membership })': {
    tenant: ({ headers }) => headerOf(headers),
    membership: ({ user, tenant }) => (members.get(user.id)?.has(tenant) === true ? { roles: [] } : null),
  },
};

for (const [way, tenancy] of Object.entries(memberships))
  describeDatabases(`tables with a tenant, with ${way}`, (database) => {
    let app: TestApp;
    const folder = mkdtempSync(join(tmpdir(), 'kit-tenants-'));
    const ids: Record<string, Record<string, string>> = {};
    beforeAll(async () => {
      members.get(ADA)?.add('north');
      app = await testApp({
        ...tenancy,
        database: database.db,
        modules: [
          accounts(),
          apiKeys(),
          audit(),
          jobs({ jobs: [work] }),
          uploads({ store: diskStore({ folder }), cleanEverySeconds: 0 }),
          webhooks(),
          objectGrants({ objects: [paperActions], isInTenant: (_db, user, tenant) => members.get(user.id)?.has(tenant) === true }),
          mcp(),
          metrics({ path: '/metrics', permission: allowAny }),
          tables,
        ],
        mount: { '/v1': { ...controllers, '/account': AccountController, '/keys': ApiKeyController, '/audit': AuditController } },
        async prepare({ db }) {
          for (const [id, username] of [
            [ADA, 'ada'],
            [BOB, 'bob'],
          ] as const)
            await insert(db, users, { id, username });
        },
      });
      const { db } = database;
      const started = await db.transaction((tx) => startJob(tx, work, {}, { owner: ADA, tenantKey: 'north' }));
      await runDueJobs(db);
      const ask = call(ADA, 'north');
      const create = async (url: string, body: object): Promise<string> => {
        const { status, body: created } = await ask('POST', url, body);
        expect([url, status, created]).toEqual([url, 201, expect.anything()]);
        return String(created['id']);
      };
      const upload = await create('/uploads', { filename: 'a.txt', content_type: 'text/plain', size: 9_000_000, multipart: true });
      const hook = await create('/hooks', { url: 'https://hooks.example.com/', events: ['*'] });
      await db.transaction((tx) => publish(tx, 'a.b', {}, { owner: ADA, tenantKey: 'north' }));
      const [delivery] = await db.query<{ id: string; event_id: string }>('select id, event_id from webhook_deliveries');
      const paper = await create('/papers', { title: 'Plan' });
      const given = await grant(db, { subject: `user:${BOB}`, set: 'viewer', object: { type: papers, id: paper } });
      Object.assign(ids, {
        '/jobs': { id: started.id },
        '/uploads': { id: upload },
        '/hooks': { id: hook, endpoint_id: hook, delivery: delivery?.id, event: delivery?.event_id },
        '/papers': { id: paper, grant_id: given.id },
      });
    });
    afterAll(async () => {
      await app.close();
      rmSync(folder, { recursive: true, force: true });
    });

    const call =
      (id: string, team: string | null) =>
      async (
        method: string,
        url: string,
        body?: unknown,
      ): Promise<{ readonly status: number; readonly body: Record<string, unknown>; readonly text: string }> => {
        const client = app.as({ id });
        const headers = team === null ? {} : { 'x-team': team };
        const answer = await client.inject({
          method,
          url: `/v1${url}`,
          headers,
          ...(body === undefined ? {} : { payload: body }),
        } as never);
        return {
          status: answer.statusCode,
          body: answer.body.startsWith('{') ? (JSON.parse(answer.body) as Record<string, unknown>) : {},
          text: answer.body,
        };
      };

    interface Tried {
      readonly name: string;
      readonly mount: keyof typeof controllers;
      readonly method: string;
      readonly path: string;
      readonly hasParams: boolean;
    }
    const routes = (): Tried[] =>
      app.app.routes.flatMap(({ method, path }): Tried[] => {
        // The modules' own routes are elsewhere: the URL of a file is signed, and so its own credential.
        const below = path.startsWith('/v1/') ? path.slice('/v1'.length) : '';
        const mount = (Object.keys(controllers) as (keyof typeof controllers)[]).find(
          (each) => below === each || below.startsWith(`${each}/`),
        );
        return mount === undefined ? [] : [{ name: `${method} ${below}`, mount, method, path: below, hasParams: below.includes(':') }];
      });
    // Below an endpoint, `:id` is a delivery.
    const nameIn = (path: string, name: string) => {
      if (name === 'id' && path.includes(':endpoint_id')) return 'delivery';
      return path === '/hooks/events/:id' ? 'event' : name;
    };
    const fill = ({ path, mount }: Tried): string =>
      path.replaceAll(/:(\w+)/g, (_, name: string) => ids[mount]?.[nameIn(path, name)] ?? `no ${name}`);
    const bodyOf = ({ name, method }: Tried): unknown => (method === 'GET' || method === 'DELETE' ? undefined : (bodies[name] ?? {}));
    /** Everything that the tables contain. */
    const stored = async (): Promise<string> => {
      const rows = [];
      for (const table of [...Object.keys(covered), 'papers', 'webhook_deliveries'])
        rows.push(await database.db.query(`select * from ${table} order by id`));
      return JSON.stringify(rows, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
    };
    const strangers: readonly (readonly [string, string, string | null])[] = [
      ['the owner in another tenant', ADA, 'south'],
      ['the owner without a tenant', ADA, null],
    ];

    const tryAll = async (who: string, id: string, team: string | null): Promise<void> => {
      const before = await stored();
      const ask = call(id, team);
      const answers: unknown[] = [];
      for (const route of routes()) {
        if (route.hasParams) {
          const { status, body } = await ask(route.method, fill(route), bodyOf(route));
          if (status !== 404 && !(status === 403 && ['tenant_required', 'not_a_member'].includes(String(body['code']))))
            answers.push([who, route.name, status, body['code']]);
        } else if (route.method === 'GET') {
          const { text } = await ask('GET', route.path);
          const shown = Object.values(ids[route.mount] ?? {}).filter((each) => text.includes(each));
          if (shown.length > 0) answers.push([who, route.name, shown]);
        }
      }
      expect(answers).toEqual([]);
      expect(await stored()).toBe(before);
    };

    test.each(strangers)('%s sees and changes no row', (who, id, team) => tryAll(who, id, team));

    test('the owner who has left the tenant sees and changes no row', async () => {
      members.get(ADA)?.delete('north');
      await tryAll('the owner who left', ADA, 'north');
      members.get(ADA)?.add('north');
    });

    test('every one of these routes works for the owner in the tenant', async () => {
      const ask = call(ADA, 'north');
      const failed: unknown[] = [];
      // Deletions end what the others need.
      for (const route of routes().toSorted(
        (a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE') || b.path.length - a.path.length,
      )) {
        if (!route.hasParams && route.method !== 'GET') continue;
        const { status, body, text } = await ask(route.method, fill(route), bodyOf(route));
        const isRefused = status === 403 || status === 404 || status >= 500 || body['code'] === 'validation_error';
        const isEmpty =
          !route.hasParams && !Object.values(ids[route.mount] ?? {}).some((each) => text.includes(each)) && route.path === route.mount;
        if (isRefused || isEmpty) failed.push([route.name, status, text]);
      }
      expect(failed).toEqual([]);
    });

    test('every table of a module with a tenant is covered, or no route reads it', () => {
      const hasTenant = ({ columns: all }: Model): boolean => Object.keys(all).some((name) => name.includes('tenant'));
      const found = app.app.modules.flatMap(({ models = [] }) => models).filter(hasTenant);
      expect(found.map(({ name }) => name).toSorted()).toEqual([...Object.keys(covered), ...Object.keys(unrouted)].toSorted());
    });
  });

describe('controllers of modules', () => {
  test('are tried here, or read tables without a tenant', async () => {
    const folder = join(root, 'packages/kit/src/contrib');
    const names = new Set<string>();
    for (const entry of readdirSync(folder)) {
      const exported = (await import(join(folder, entry, 'index.ts'))) as Record<string, unknown>;
      for (const [name, value] of Object.entries(exported))
        if (typeof value === 'function' && value.prototype instanceof Controller) names.add(name);
    }
    const tried = ['JobController', 'UploadController', 'WebhookEndpointController'];
    expect([...names].toSorted()).toEqual([...tried, ...Object.keys(tenantless)].toSorted());
  });
});
