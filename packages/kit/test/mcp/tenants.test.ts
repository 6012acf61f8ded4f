import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Authenticator } from '../../src/auth/index.ts';
import { mcp } from '../../src/contrib/mcp/index.ts';
import { CrudController, resource } from '../../src/crud/index.ts';
import { createTable, migration, model, t } from '../../src/db/index.ts';
import { Controller, route } from '../../src/http/index.ts';
import { all, hasRole, hasScopes, isStaff } from '../../src/permissions/index.ts';
import { testApp, type TestApp, type TestAppOptions } from '../../src/testing/test-app.ts';

const scopes: Readonly<Record<string, string[]>> = { ada: ['*'], bob: ['*'], eve: ['*'], reader: ['notes:read'] };
const bearer: Authenticator = {
  name: 'bearer',
  securityScheme: { type: 'http', scheme: 'bearer' },
  authenticate({ headers }) {
    const name = String(headers['authorization'] ?? '').replace('Bearer ', '');
    const user = { id: name, username: name, email: null, is_active: true, is_staff: false, is_superuser: false };
    return scopes[name] === undefined ? null : { user, scheme: 'bearer', credentialId: name, scopes: scopes[name] };
  },
};
const roles: Readonly<Record<string, string>> = { 'ada acme': 'admin', 'bob acme': 'member' };

const columns = { id: t.uuidv7().pk(), tenant_id: t.text(20).readOnly(), title: t.text(50) };
const indexes = [{ columns: ['tenant_id', '-id'] }];
const notes = model('notes', columns, { indexes });
const tool = { tool: true } as const;
class NoteController extends CrudController(resource(notes, { tenant: 'tenant_id' }), {
  permission: hasScopes(),
  scope: 'notes',
  operations: { list: tool, retrieve: tool, create: tool, destroy: tool },
}) {}

const settings = {
  tool: true,
  params: z.object({ tenant: z.string() }),
  response: z.object({ tenant: z.string().nullable() }),
  summary: 'Read the settings of a tenant',
} as const;
class SettingsController extends Controller {
  read = route.get('/:tenant/settings', { ...settings, permission: hasRole('admin') }, async ({ caller }) => ({
    tenant: (await caller()).tenant,
  }));
  scoped = route.get(
    '/:tenant/scoped',
    { ...settings, permission: all(hasRole('admin'), hasScopes()), scope: 'settings:read' },
    async ({ caller }) => ({ tenant: (await caller()).tenant }),
  );
  staff = route.get('/:tenant/staff', { ...settings, permission: all(hasRole('admin'), isStaff) }, async ({ caller }) => ({
    tenant: (await caller()).tenant,
  }));
  own = route.get('/settings', { ...settings, params: undefined, permission: hasRole('admin') }, async ({ caller }) => ({
    tenant: (await caller()).tenant,
  }));
}

let asked = 0;
const start = (tenant: NonNullable<TestAppOptions['tenant']>): Promise<TestApp> =>
  testApp({
    authenticators: [bearer],
    tenant: (exchange) => {
      asked += 1;
      return tenant(exchange);
    },
    membership: async ({ user, tenant: found }) => {
      const role = roles[`${user.id} ${found}`];
      return role === undefined ? null : { roles: [role] };
    },
    modules: [
      mcp(),
      { name: 'notes', models: [notes], migrations: [migration('0001_initial', [createTable('notes', columns, { indexes })])] },
    ],
    mount: { '/v1': { '/notes': NoteController, '/organizations': SettingsController } },
  });

const header = (headers: Readonly<Record<string, unknown>>): string | null => (headers['x-tenant'] as string | undefined) ?? null;
beforeEach(() => {
  asked = 0;
});

function clientOf(app: () => TestApp) {
  const ask = async (who: string, method: string, params: object, headers: Record<string, string>) => {
    const response = await app().inject({
      method: 'POST',
      url: '/mcp',
      headers: { host: 'localhost', authorization: `Bearer ${who}`, accept: 'application/json, text/event-stream', ...headers },
      payload: { jsonrpc: '2.0', id: 1, method, params },
    });
    return response.body;
  };
  return {
    list: async (who: string, headers: Record<string, string> = {}) =>
      Array.from((await ask(who, 'tools/list', {}, headers)).matchAll(/"name":"(\w+)"/g), ([, name]) => name),
    call: (who: string, name: string, args: object, headers: Record<string, string> = {}) =>
      ask(who, 'tools/call', { name, arguments: args }, headers),
  };
}

describe('a tool whose tenant is an argument', () => {
  describe.each([
    [
      'a parameter of the path',
      ({ request, headers }: { request: { params: unknown }; headers: Readonly<Record<string, unknown>> }) =>
        (request.params as { tenant?: string } | undefined)?.tenant ?? header(headers),
    ],
    [
      'a part of the URL',
      ({ url, headers }: { url: string; headers: Readonly<Record<string, unknown>> }) =>
        /^\/v1\/organizations\/([^/]+)\/\w+$/.exec(url)?.[1] ?? header(headers),
    ],
    [
      'found by a part of the URL',
      async ({ url, headers }: { url: string; headers: Readonly<Record<string, unknown>> }) =>
        /^\/v1\/organizations\/.*\//.test(url) ? (/\/(acme|other)\//.exec(url)?.[1] ?? null) : header(headers),
    ],
  ])('as %s', (_what, tenant) => {
    let app: TestApp;
    beforeAll(async () => {
      app = await start(tenant);
    });
    afterAll(() => app.close());
    const { list, call } = clientOf(() => app);

    test('is listed where nothing but the tenant is open, and decided by the call as by a request', async () => {
      expect(await list('ada')).toEqual(['settings_read', 'settings_scoped']);
      expect(await list('reader')).toEqual(['settings_read']);
      expect(await call('ada', 'settings_read', { tenant: 'acme' })).toContain('"structuredContent":{"tenant":"acme"}');
      for (const [who, of] of [
        ['bob', 'acme'],
        ['eve', 'acme'],
        ['ada', 'other'],
      ] as const) {
        const route = (await app.inject({ url: `/v1/organizations/${of}/settings`, headers: { authorization: `Bearer ${who}` } })).json();
        expect(route.status).toBe(403);
        expect(await call(who, 'settings_read', { tenant: of })).toContain(`\\"code\\":\\"${route.code}\\"`);
      }
      expect(await call('ada', 'settings_staff', { tenant: 'acme' })).toContain('Unknown tool');
      expect(await call('reader', 'settings_scoped', { tenant: 'acme' })).toContain('Unknown tool');
    });

    test('is not one that the header names the tenant of', async () => {
      const own = ['note_list', 'note_retrieve', 'note_create', 'note_destroy'];
      expect(await list('ada', { 'x-tenant': 'acme' })).toEqual([...own, 'settings_read', 'settings_scoped', 'settings_own']);
      expect(await list('bob', { 'x-tenant': 'acme' })).toEqual([...own, 'settings_read', 'settings_scoped']);
      expect(await list('eve', { 'x-tenant': 'acme' })).toEqual(['settings_read', 'settings_scoped']);
    });
  });
});

describe('a resolver that looks at nothing of the route', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await start(async ({ headers }) => header(headers));
  });
  afterAll(() => app.close());
  const { list, call } = clientOf(() => app);

  test('is asked once for a whole list, and again by each request', async () => {
    for (const [who, count] of [
      ['ada', 7],
      ['bob', 4],
      ['eve', 0],
    ] as const) {
      asked = 0;
      expect(await list(who, { 'x-tenant': 'acme' })).toHaveLength(count);
      expect([who, asked]).toEqual([who, 1]);
    }
    expect(await call('ada', 'note_create', { title: 'x' }, { 'x-tenant': 'acme' })).toContain('"tenant_id":"acme"');
  });
});
