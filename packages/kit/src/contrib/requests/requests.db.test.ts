import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import type { AddressInfo } from 'node:net';
import type { Authenticator, User } from '../../auth/index.ts';
import { Controller, route } from '../../http/index.ts';
import { deprecation, requestId, responseVersions } from '../../middleware/index.ts';
import { all, allowAny, hasScopes, isAuthenticated, isStaff } from '../../permissions/index.ts';
import { CrudController } from '../../crud/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { clientThrottle } from '../../throttle/index.ts';
import { accounts } from '../accounts/index.ts';
import { createUser } from '../accounts/users/manage-users.ts';
import { accountsDirectory } from '../accounts/users/user-directory.ts';
import { accountsOf } from '../accounts/users/accounts.ts';
import { apiKeys, createApiKey } from '../apikeys/index.ts';
import { mcp } from '../mcp/index.ts';
import { RequestController, requestResource, requests, UsageController, usageResource } from './index.ts';
import { requestLogs } from './log/log.ts';
import { removeOld } from './log/store.ts';

const Answer = z.object({ ok: z.boolean() });
const answer = () => ({ ok: true });

const { promise: arrived, resolve: hasArrived } = Promise.withResolvers<void>();

class ThingController extends Controller {
  read = route.get(
    '/things/:id',
    { permission: isAuthenticated, response: Answer, query: z.object({ limit: z.string().optional() }) },
    answer,
  );
  secret = route.get(
    '/links/:token',
    { permission: allowAny, response: Answer, params: z.object({ token: z.string().meta({ 'x-sensitive': true }) }) },
    answer,
  );
  old = route.get('/old', { permission: isAuthenticated, response: Answer, deprecated: true }, answer);
  tool = route.get('/tool', { permission: isAuthenticated, response: Answer, tool: true, summary: 'A tool' }, answer);
  fails = route.get('/fails', { permission: isAuthenticated, response: Answer }, () => {
    throw new Error('a secret detail');
  });
  scoped = route.get('/scoped', { permission: hasScopes(), scope: 'things:write', response: Answer }, answer);
  create = route.post(
    '/things',
    { permission: isAuthenticated, body: z.object({ name: z.string() }), response: Answer, status: 201 },
    answer,
  );
  follow = route.stream('/follow', { permission: isAuthenticated, response: Answer }, async function* () {
    yield { data: { ok: true } };
    yield { data: { ok: true } };
  });
  hangs = route.get('/hangs', { permission: allowAny, response: Answer }, ({ signal }) => {
    hasArrived();
    return new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason as Error)));
  });
  limited = route.get('/limited', { permission: isAuthenticated, throttles: [clientThrottle('1/day')], response: Answer }, answer);
  hidden = route.get('/hidden', { permission: allowAny, hidden: true, response: Answer }, answer);
}

class TeamRequests extends CrudController(requestResource, {
  permission: all(isAuthenticated, isStaff),
  audience: 'tenant',
  operations: { create: false, update: false, partialUpdate: false, destroy: false },
}) {}
class TeamUsage extends CrudController(usageResource, {
  permission: all(isAuthenticated, isStaff),
  audience: 'tenant',
  operations: { create: false, update: false, partialUpdate: false, destroy: false },
}) {}

const actAs: Authenticator = {
  name: 'act_as',
  securityScheme: { type: 'http', scheme: 'act-as' },
  async authenticate({ headers, db }) {
    const name = headers['x-act-as'];
    if (typeof name !== 'string') return null;
    const user = await accountsDirectory.findByLogin(db, name);
    return user === null ? null : { user, scheme: 'session', scopes: null };
  },
};

const members: Readonly<Record<string, readonly string[]>> = { ada: ['north', 'south'], bob: ['north'], eve: ['south'] };

describeDatabases('the request log', (database) => {
  const clock = fakeClock('2030-03-05T10:00:00.000Z');
  const users: Record<string, User> = {};
  let kit: TestApp;
  let key: { readonly id: string; readonly raw: string };

  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      clock,
      authenticators: [actAs],
      tenant: ({ headers }) => (typeof headers['x-team'] === 'string' ? headers['x-team'] : null),
      membership: ({ user, tenant }) => (members[user.username]?.includes(tenant) === true ? { roles: [] } : null),
      middleware: [requestId(), deprecation(), responseVersions({ versions: [{ version: '2' }, { version: '1' }] })],
      modules: [accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }), apiKeys(), mcp(), requests()],
      mount: {
        '/v1': {
          '/': ThingController,
          '/requests': RequestController,
          '/usage': UsageController,
          '/team-requests': TeamRequests,
          '/team-usage': TeamUsage,
        },
      },
    });
    const management = accountsOf(kit.app.db).management(null);
    for (const username of Object.keys(members))
      users[username] = await createUser(database.db, { username, password: null, is_staff: username === 'ada' }, management);
    const made = await createApiKey(database.db, { user: users['ada'] as User, name: 'test', scopes: ['requests:read'] });
    key = { id: made.apiKey.id, raw: made.raw };
  });
  afterAll(() => kit.close());

  const flush = () => requestLogs.of(database.db).flush();
  type Row = Record<string, unknown>;
  const rows = async (): Promise<Row[]> => {
    await flush();
    return database.db.query('select * from request_log order by id');
  };
  /** The rows that a request leaves. */
  const left = async (work: () => Promise<unknown>): Promise<Row[]> => {
    const before = (await rows()).length;
    await work();
    return (await rows()).slice(before);
  };
  const ask = (url: string, headers: Record<string, string> = {}, more: object = {}) =>
    kit.inject({ method: 'GET', url, headers, ...more });
  const as = (who: string, team?: string): Record<string, string> => ({
    'x-act-as': who,
    ...(team === undefined ? {} : { 'x-team': team }),
  });
  const is = (row: Row | undefined, expected: Row) =>
    expect({
      ...row,
      failed: Boolean(row?.['failed']),
      aborted: Boolean(row?.['aborted']),
      deprecated: Boolean(row?.['deprecated']),
    }).toMatchObject(expected);

  test('a row says who called what with which key, and how it ended', async () => {
    const [row, ...more] = await left(() => ask('/v1/things/42', { 'x-api-key': key.raw, 'x-request-id': 'req-1' }));
    expect(more).toEqual([]);
    is(row, {
      method: 'GET',
      route: '/v1/things/:id',
      path: '/v1/things/42',
      status: 200,
      failed: false,
      aborted: false,
      error_code: null,
      owner_id: users['ada']?.id,
      tenant_key: '',
      scheme: 'api_key',
      key_id: key.id,
      request_id: 'req-1',
      version: '2',
      deprecated: false,
      via: 'http',
    });
    expect(Number(row?.['duration_ms'])).toBeGreaterThan(0);
  });

  test('nothing of what a request carried is stored: no body, header, value of the query, sensitive part of the address or API key', async () => {
    const secret = 'hunter2-hunter2';
    const made = await left(async () => {
      await ask(`/v1/things/1?limit=${secret}&unknown=${secret}`, { ...as('ada'), cookie: `session=${secret}`, 'user-agent': secret });
      await ask(`/v1/links/${secret}`);
      await ask('/v1/things', as('ada'), { method: 'POST', payload: { name: secret } });
      await ask('/v1/things', as('ada'), { method: 'POST', payload: { name: 1, [secret]: secret } });
      await ask(`/${secret}`);
      await ask(`/v1/things/${key.raw}`, as('ada'));
    });
    expect(made.map(({ path }) => path)).toEqual([
      '/v1/things/1?limit',
      '/v1/links/[masked]',
      '/v1/things',
      '/v1/things',
      null,
      expect.stringMatching(/^\/v1\/things\/kit_[0-9A-Za-z]{12}_…$/),
    ]);
    expect(JSON.stringify(made)).not.toContain(secret);
  });

  test('errors: with the code that the caller was told, and without what was thrown', async () => {
    const made = await left(async () => {
      await ask('/v1/fails', as('ada'));
      await ask('/v1/things', as('ada'), { method: 'POST', payload: {} });
      await ask('/v1/scoped', { 'x-api-key': key.raw });
      await ask('/v1/things/1', { 'x-api-key': 'kit_no' });
      await ask('/v1/nowhere', as('ada'));
      await ask('/v1/things/1', as('ada'), { method: 'DELETE' });
      await ask('/v1/limited', as('ada'));
      await ask('/v1/limited', as('ada'));
    });
    const ada = users['ada']?.id;
    expect(made.map(({ route: path, status, error_code: code, owner_id: owner }) => [path, status, code, owner])).toEqual([
      ['/v1/fails', 500, 'internal_error', ada],
      ['/v1/things', 422, 'validation_error', ada],
      ['/v1/scoped', 403, 'insufficient_scope', ada],
      // Before the caller is known the row is nobody's, and only staff sees it.
      ['/v1/things/:id', 401, 'invalid_api_key', ''],
      [null, 404, 'not_found', ''],
      [null, 405, 'method_not_allowed', ''],
      ['/v1/limited', 200, null, ada],
      ['/v1/limited', 429, 'throttled', ''],
    ]);
    expect(made.map(({ failed }) => Boolean(failed))).toEqual([true, true, true, true, true, true, false, true]);
    expect(JSON.stringify(made)).not.toContain('a secret detail');
  });

  test('a deprecated operation and an older version are marked', async () => {
    const [row] = await left(() => ask('/v1/old', { ...as('ada'), 'accept-version': '1' }));
    is(row, { route: '/v1/old', deprecated: true, version: '1' });
  });

  test('operations that are not in the document leave no row', async () => {
    expect(await left(() => ask('/v1/hidden'))).toEqual([]);
  });

  test('a call of a tool leaves the row of its operation', async () => {
    const payload = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'thing_tool', arguments: {} } };
    const headers = { 'x-api-key': key.raw, host: 'localhost', accept: 'application/json, text/event-stream' };
    const made = await left(async () => expect((await ask('/mcp', headers, { method: 'POST', payload })).body).toContain('"ok":true'));
    expect(made).toHaveLength(1);
    is(made[0], { method: 'GET', route: '/v1/tool', status: 200, via: 'mcp', key_id: key.id, owner_id: users['ada']?.id });
  });

  test('a stream leaves one row when it is over, and is not an aborted request', async () => {
    const [row, ...more] = await left(() => ask('/v1/follow', as('ada')));
    expect(more).toEqual([]);
    is(row, { route: '/v1/follow', status: 200, failed: false, aborted: false });
  });

  test('a request whose client went away has no status, and is marked', async () => {
    await kit.listen();
    const before = (await rows()).length;
    const { port } = kit.app.fastify.server.address() as AddressInfo;
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.write('GET /v1/hangs HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await arrived;
    socket.destroy();
    await expect.poll(async () => (await rows()).length, { timeout: 30_000 }).toBe(before + 1);
    is((await rows()).at(-1), { route: '/v1/hangs', status: null, aborted: true, failed: true });
  });

  test('the tenant is the one that the caller is a member of, also where the operation does not ask for it', async () => {
    const made = await left(async () => {
      await ask('/v1/things/1', as('ada', 'north'));
      await ask('/v1/things/1', as('bob', 'south'));
      await ask('/v1/links/x', { 'x-team': 'north' });
      await ask('/v1/requests', as('ada', 'south'));
    });
    expect(made.map(({ tenant_key: tenant }) => tenant)).toEqual(['north', '', '', 'south']);
  });

  test('an owner sees the own rows of the tenant, a tenant its own, and neither anything of another', async () => {
    await ask('/v1/things/1', as('bob', 'north'));
    await ask('/v1/things/1', as('eve', 'south'));
    await ask('/v1/things/1', as('bob'));
    await flush();
    for (const [who, team] of [
      ['ada', 'north'],
      ['ada', 'south'],
      ['bob', 'north'],
      ['eve', 'south'],
      ['bob', undefined],
    ] as const) {
      for (const path of ['requests?limit=100', 'usage?limit=500']) {
        const { items, count } = (await ask(`/v1/${path}`, as(who, team))).json() as { items: { id: string }[]; count: number };
        const table = path.startsWith('requests') ? 'request_log' : 'request_usage';
        const own = await database.db.query<{ id: string }>(`select id from ${table} where owner_id = $1 and tenant_key = $2`, [
          users[who]?.id,
          team ?? '',
        ]);
        expect([who, team, path, count]).toEqual([who, team, path, own.length]);
        expect(new Set(items.map(({ id }) => id))).toEqual(new Set(own.map(({ id }) => id)));
        await flush();
      }
    }
    const foreign = (await database.db.query<{ id: string }>('select id from request_log where owner_id = $1', [users['eve']?.id]))[0]?.id;
    expect((await ask(`/v1/requests/${foreign}`, as('bob', 'north'))).statusCode).toBe(404);
    expect((await ask(`/v1/requests/${foreign}`, as('ada', 'north'))).statusCode).toBe(404);
  });

  test('the view of a tenant has the rows of all its members, and without a tenant there is none', async () => {
    for (const [path, table] of [
      ['team-requests', 'request_log'],
      ['team-usage', 'request_usage'],
    ] as const) {
      await flush();
      const of = async (team?: string) =>
        (await ask(`/v1/${path}?limit=100`, as('ada', team))).json<{ items: { tenant_key: string }[] }>().items;
      const north = await of('north');
      expect(new Set(north.map(({ tenant_key: tenant }) => tenant))).toEqual(new Set(['north']));
      const owners = await database.db.query(`select distinct owner_id from ${table} where tenant_key = 'north'`);
      expect(owners.length).toBeGreaterThan(1);
      expect(await of()).toEqual([]);
      expect((await ask(`/v1/${path}`, as('bob', 'south'))).statusCode).toBe(403);
    }
  });

  test('filters: failures, a key, an id of a request, a period', async () => {
    await ask('/v1/fails', { ...as('eve'), 'x-request-id': 'of-eve' });
    await flush();
    const list = async (query: string) =>
      (await ask(`/v1/requests?${query}`, as('eve'))).json<{ items: { route: string; failed: boolean; request_id: string }[] }>().items;
    expect((await list('failed=true')).map(({ route: path }) => path)).toEqual(['/v1/fails']);
    expect((await list('failed=false')).some(({ failed }) => failed)).toBe(false);
    expect((await list('request_id=of-eve')).map(({ request_id: id }) => id)).toEqual(['of-eve']);
    expect(await list(`key_id=${key.id}`)).toEqual([]);
    const now = clock.now().toISOString();
    expect(await list(`until=${now}`)).toEqual([]);
    expect((await list(`since=${now}`)).length).toBeGreaterThan(0);
    const byKey = (await ask(`/v1/requests?key_id=${key.id}`, { 'x-api-key': key.raw })).json() as { items: { key_id: string }[] };
    expect(new Set(byKey.items.map(({ key_id: id }) => id))).toEqual(new Set([key.id]));
  });

  test('usage counts every request by day, operation and key, as a list, as sums and as CSV', async () => {
    await flush();
    const counted = async () =>
      (await ask('/v1/usage?route=/v1/tool', as('bob')))
        .json<{ items: { requests: string; failures: string }[] }>()
        .items.map(({ requests: calls, failures }) => [Number(calls), Number(failures)]);
    for (let call = 0; call < 3; call += 1) await ask('/v1/tool', as('bob'));
    await flush();
    for (let call = 0; call < 2; call += 1) await ask('/v1/tool', as('bob'));
    await flush();
    expect(await counted()).toEqual([[5, 0]]);
    const sums = (await ask('/v1/usage/stats?group_by=route&route=/v1/tool', as('bob'))).json() as { groups: { metrics?: object }[] };
    expect(JSON.stringify(sums)).toContain('"requests":"5"');
    const csv = (await ask('/v1/usage/export?route=/v1/tool', as('bob'))).body.split('\r\n');
    expect(csv[0]).toBe('id,day,method,route,version,deprecated,via,key_id,requests,failures');
    expect(csv[1]).toMatch(/,2030-03-05,GET,\/v1\/tool,2,false,http,"",5,0$/);
  });

  test('rows and counts that are older than they are kept are removed, and no others', async () => {
    const before = (await rows()).length;
    clock.advance(40 * 86_400_000);
    await ask('/v1/tool', as('bob'));
    await flush();
    const cut = new Date(clock.now().getTime() - 30 * 86_400_000);
    expect(await removeOld(database.db, cut, new Date(0))).toBe(before);
    expect(await removeOld(database.db, cut, new Date(0))).toBe(0);
    expect((await rows()).map(({ route: path }) => path)).toEqual(['/v1/tool']);
    expect(await removeOld(database.db, new Date(0), cut)).toBeGreaterThan(0);
    expect((await database.db.query<{ day: string }>('select distinct day from request_usage')).map(({ day }) => day)).toEqual([
      '2030-04-14',
    ]);
  });

  test('a sampled log has all failures, and the usage counts what has no row', async () => {
    const sampled = await testApp({
      database: await database.open(),
      authenticators: [actAs],
      clock: fakeClock('2031-01-01T00:00:00.000Z'),
      modules: [accounts(), requests({ sampleRatio: 0 })],
      mount: { '/v1': { '/': ThingController } },
    });
    for (let call = 0; call < 5; call += 1) await sampled.inject({ url: '/v1/tool', headers: as('bob') });
    await sampled.inject({ url: '/v1/fails', headers: as('bob') });
    await sampled.close();
    const made = await database.db.query('select route from request_log where finished_at >= $1', [new Date('2031-01-01')]);
    expect(made).toEqual([{ route: '/v1/fails' }]);
    const counted = await database.db.query<{ route: string; requests: number | bigint; failures: number | bigint }>(
      "select route, requests, failures from request_usage where day = '2031-01-01' order by route",
    );
    expect(counted.map(({ route: path, requests: calls, failures }) => [path, Number(calls), Number(failures)])).toEqual([
      ['/v1/fails', 1, 1],
      ['/v1/tool', 5, 0],
    ]);
  });
});
