import { afterEach, expect, test } from 'vitest';
import { coreTables } from '../app/data/migration-modules.ts';
import type { Authenticator } from '../auth/index.ts';
import { Controller, route } from '../http/index.ts';
import { allowAny } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { testApp, type TestApp, type TestAppOptions } from '../testing/test-app.ts';
import { sqlStorage } from './sql-storage.ts';
import { anonymousThrottle, clientThrottle, scopedThrottle, tenantThrottle, userThrottle } from './throttles.ts';

/** `x-user: ada` is enough to be ada. */
const byHeader: Authenticator = {
  name: 'header',
  securityScheme: {},
  authenticate: ({ headers }) => {
    const id = headers['x-user'];
    if (typeof id !== 'string') return null;
    return {
      user: { id, username: id, email: null, is_active: true, is_staff: false, is_superuser: false },
      scheme: 'header',
      scopes: null,
    };
  },
};

class ThingController extends Controller {
  read = route.get('/', { permission: allowAny }, () => undefined);
  search = route.get('/search', { permission: allowAny, throttles: [scopedThrottle('search')] }, () => undefined);
  fail = route.get('/fail', { permission: allowAny }, () => {
    throw new Error('boom');
  });
}

describeDatabases('limits of a served app', (database) => {
  const clock = fakeClock();
  let served: TestApp | undefined;

  const serve = async (options: Partial<TestAppOptions>): Promise<void> => {
    for (const { name } of [...(coreTables.models ?? []), { name: 'kit_migrations' }])
      await database.db.query(`drop table if exists ${name}`);
    served = await testApp({
      database: database.db,
      authenticators: [byHeader],
      mount: { '/v1': { '/things': ThingController } },
      throttleStorage: sqlStorage({ onFailure: 'refuse', timeoutMs: 60_000 }),
      settings: { throttleRates: { search: '2/min' } },
      trustedProxies: ['127.0.0.1'],
      clock,
      ...options,
    });
  };
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const response = await served?.inject({ method: 'GET', url: `/v1/things${path}`, headers });
    if (response === undefined) throw new Error('nothing is served');
    return { status: response.statusCode, headers: response.headers, body: response.body };
  };
  const from = (address: string) => ({ 'x-forwarded-for': address });

  afterEach(() => served?.close());

  test('of 40 requests at once exactly the limit gets through', async () => {
    await serve({ throttles: [userThrottle('15/hour')] });
    const answers = await Promise.all(Array.from({ length: 40 }, () => get('/', { 'x-user': 'ada' })));
    expect(answers.filter(({ status }) => status === 204)).toHaveLength(15);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(25);
  });

  test('every governed answer states its budget, a refusal also when to come back', async () => {
    await serve({ throttles: [anonymousThrottle('2/min')] });
    expect((await get('/')).headers).toMatchObject({
      'ratelimit-limit': '2',
      'ratelimit-remaining': '1',
      'ratelimit-reset': '30',
      'ratelimit-policy': '"anonymous";q=2;w=60',
      ratelimit: '"anonymous";r=1;t=30',
    });
    const failed = await get('/fail');
    expect(failed).toMatchObject({ status: 500, headers: { 'ratelimit-remaining': '0' } });
    const refused = await get('/');
    expect(refused).toMatchObject({ status: 429, headers: { 'retry-after': '30', 'ratelimit-remaining': '0' } });
    expect(JSON.parse(refused.body)).toMatchObject({ code: 'throttled', status: 429, policy: 'anonymous' });
    clock.advance(29_999);
    expect((await get('/')).status).toBe(429);
    clock.advance(1);
    expect((await get('/')).status).toBe(204);
  });

  test('users have budgets of their own, and anonymous callers of one address share one', async () => {
    await serve({ throttles: [userThrottle('1/hour'), anonymousThrottle('1/hour')] });
    expect((await get('/', { 'x-user': 'ada' })).status).toBe(204);
    expect((await get('/', { 'x-user': 'bob' })).status).toBe(204);
    expect((await get('/', { 'x-user': 'ada' })).status).toBe(429);
    expect((await get('/', from('203.0.113.1'))).status).toBe(204);
    expect((await get('/', from('203.0.113.1'))).status).toBe(429);
    expect((await get('/', from('203.0.113.2'))).status).toBe(204);
  });

  test('an address counts through a trusted proxy, and a forged one does not', async () => {
    await serve({ throttles: [clientThrottle('1/hour')], trustedProxies: [] });
    expect((await get('/', from('203.0.113.1'))).status).toBe(204);
    expect((await get('/', from('203.0.113.2'))).status).toBe(429);
    await served?.close();
    await serve({ throttles: [clientThrottle('1/hour')] });
    expect((await get('/', from('203.0.113.1'))).status).toBe(204);
    // What the client itself wrote stands left of what the proxy saw.
    expect((await get('/', from('198.51.100.9, 203.0.113.1'))).status).toBe(429);
    expect((await get('/', from('2001:db8::1'))).status).toBe(204);
    expect((await get('/', from('2001:db8::2'))).status).toBe(429);
  });

  test('a tenant’s users share one budget', async () => {
    await serve({ throttles: [tenantThrottle('2/hour')], tenant: ({ principal }) => principal?.user.id.split('-')[0] ?? null });
    expect((await get('/', { 'x-user': 'acme-1' })).status).toBe(204);
    expect((await get('/', { 'x-user': 'acme-2' })).status).toBe(204);
    expect((await get('/', { 'x-user': 'acme-3' })).status).toBe(429);
    expect((await get('/', { 'x-user': 'other-1' })).status).toBe(204);
    expect((await get('/')).headers['ratelimit-limit']).toBeUndefined();
  });

  test('a scope has its own rate on top, and what it refuses costs the others nothing', async () => {
    await serve({ throttles: [userThrottle('100/hour')] });
    const ada = { 'x-user': 'ada' };
    const statuses = [];
    for (let i = 0; i < 5; i += 1) statuses.push((await get('/search', ada)).status);
    expect(statuses).toEqual([204, 204, 429, 429, 429]);
    expect((await get('/', ada)).headers['ratelimit-remaining']).toBe('97');
  });

  test('budgets outlive the process', async () => {
    await serve({ throttles: [userThrottle('1/hour')] });
    expect((await get('/', { 'x-user': 'ada' })).status).toBe(204);
    await served?.close();
    served = await testApp({
      database: database.db,
      authenticators: [byHeader],
      mount: { '/v1': { '/things': ThingController } },
      throttleStorage: sqlStorage(),
      throttles: [userThrottle('1/hour')],
      settings: { throttleRates: { search: '2/min' } },
      clock,
    });
    expect((await get('/', { 'x-user': 'ada' })).status).toBe(429);
  });
});
