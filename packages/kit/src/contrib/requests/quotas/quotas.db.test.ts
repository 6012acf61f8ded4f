import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { startRedisServer } from '../../../../../../test/provision/redis-server.ts';
import type { Authenticator, User } from '../../../auth/index.ts';
import { emptyRegistry } from '../../../app/declare/registry.ts';
import { Controller, route } from '../../../http/index.ts';
import { on } from '../../../events/index.ts';
import { hasScopes, isAuthenticated } from '../../../permissions/index.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { testApp, type TestApp } from '../../../testing/test-app.ts';
import { accounts } from '../../accounts/index.ts';
import { accountsOf } from '../../accounts/users/accounts.ts';
import { createUser } from '../../accounts/users/manage-users.ts';
import { accountsDirectory } from '../../accounts/users/user-directory.ts';
import { ApiKeyController, apiKeys, createApiKey, updateApiKey } from '../../apikeys/index.ts';
import { requireCountedQuota } from '../../apikeys/manage/counted-quota.ts';
import { QuotaController, requests, usage, UsageRecorded, type RecordedUsage } from '../index.ts';
import { quotaCounters } from './quota-counter.ts';
import { recordPeriods } from './usage-recorded.ts';

const Answer = z.object({ ok: z.boolean() });
const answer = () => ({ ok: true });

class ThingController extends Controller {
  read = route.get('/things', { permission: isAuthenticated, response: Answer }, answer);
  scoped = route.get('/scoped', { permission: hasScopes(), scope: 'things:write', response: Answer }, answer);
}

/** A person in a browser. */
const actAs: Authenticator = {
  name: 'act_as',
  securityScheme: { type: 'http', scheme: 'act-as' },
  async authenticate({ headers, db }) {
    const name = headers['x-act-as'];
    const user = typeof name === 'string' ? await accountsDirectory.findByLogin(db, name) : null;
    return user === null ? null : { user, scheme: 'session', scopes: null, recentLogin: true };
  },
};

test('a quota that nobody counts is refused', () => {
  expect(() => requireCountedQuota({ registry: emptyRegistry }, '1/day')).toThrow(
    expect.objectContaining({ code: 'validation_error', errors: [expect.objectContaining({ code: 'not_counted' })] }),
  );
  expect(requireCountedQuota({ registry: emptyRegistry }, null)).toBeUndefined();
});

const REDIS = 'in Redis';

describe.each(['in the database', REDIS])('counted %s', (place) => {
  describeDatabases('quotas', (database) => {
    const clock = fakeClock('2030-01-31T23:30:00.000Z');
    const users: Record<string, User> = {};
    const recorded: RecordedUsage[] = [];
    const plans: Record<string, string> = { north: '12/month' };
    const closers: (() => Promise<unknown>)[] = [];
    let kit: TestApp;

    /** The store that the quotas are counted in. */
    const counted = async () => {
      if (place !== REDIS) return {};
      const server = await startRedisServer();
      const client = new Redis(server.url);
      closers.push(
        () => client.quit(),
        () => server.stop(),
      );
      // Long enough for an answer of Redis on a busy machine.
      return { redis: { client, prefix: `test:${crypto.randomUUID()}:`, timeoutMs: 60_000 } };
    };
    /** What Redis counts is in the lists a second later. */
    const settled = async () => {
      const rows = await database.db.query<{ id: string }>('select cast(id as text) as id from request_quotas');
      await quotaCounters.of(database.db).settle(rows.map(({ id }) => id));
    };

    beforeAll(async () => {
      kit = await testApp({
        database: database.db,
        clock,
        authenticators: [actAs],
        tenant: ({ headers }) => (typeof headers['x-team'] === 'string' ? headers['x-team'] : null),
        membership: ({ user, tenant }) => (user.username === 'ada' || tenant !== 'north' ? { roles: [] } : null),
        handlers: [on(UsageRecorded, (data) => void recorded.push(data))],
        modules: [
          accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }),
          apiKeys(),
          requests({
            quotas: { owner: (id) => (id === users['bob']?.id ? '5/day' : null), tenant: (id) => plans[id] ?? null, ...(await counted()) },
          }),
        ],
        mount: { '/v1': { '/': ThingController, '/api-keys': ApiKeyController, '/quotas': QuotaController } },
      });
      const management = accountsOf(kit.app.db).management(null);
      for (const username of ['ada', 'bob', 'cleo'])
        users[username] = await createUser(database.db, { username, password: null, is_staff: username === 'ada' }, management);
    });
    afterAll(async () => {
      await kit.close();
      for (const close of closers) await close();
    });

    const keyOf = async (who: string, quota: string | null = null) => {
      const { apiKey, raw } = await createApiKey(database.db, { user: users[who] as User, name: 'test', scopes: ['requests:read'], quota });
      return { id: apiKey.id, raw };
    };
    const call = async ({ raw }: { readonly raw: string }, headers: Record<string, string> = {}, url = '/v1/things') =>
      kit.inject({ method: 'GET', url, headers: { 'x-api-key': raw, ...headers } });
    const statuses = async (times: number, ...request: Parameters<typeof call>) => {
      const found: Record<number, number> = {};
      const responses = await Promise.all(Array.from({ length: times }, () => call(...request)));
      for (const { statusCode } of responses) found[statusCode] = (found[statusCode] ?? 0) + 1;
      return found;
    };

    test('of 20 requests at once exactly the quota gets through, and the rest is told when it renews', async () => {
      const key = await keyOf('ada', '7/month');
      expect(await statuses(20, key)).toEqual({ 200: 7, 429: 13 });
      const refused = await call(key);
      expect(refused.statusCode).toBe(429);
      expect(refused.headers).toMatchObject({
        'retry-after': '1800',
        'ratelimit-limit': '7',
        'ratelimit-remaining': '0',
        'ratelimit-reset': '1800',
        'ratelimit-policy': `"quota_key";q=7;w=${31 * 86_400}`,
        ratelimit: '"quota_key";r=0;t=1800',
      });
      expect(refused.json()).toMatchObject({
        code: 'request_quota_exceeded',
        policy: 'quota_key',
        quota: '7/month',
        renews_at: '2030-02-01T00:00:00.000Z',
      });
      expect(await usage(database.db, { key: key.id })).toEqual([
        { period: 'month', from: new Date('2030-01-01T00:00:00Z'), until: new Date('2030-02-01T00:00:00Z'), used: 7, quota: 7 },
      ]);
    });

    test('an admitted response says what is left', async () => {
      const key = await keyOf('ada', '3/hour');
      expect((await call(key)).headers).toMatchObject({
        'ratelimit-limit': '3',
        'ratelimit-remaining': '2',
        ratelimit: '"quota_key";r=2;t=1800',
      });
    });

    test('a larger quota admits at once, a smaller one refuses at once, and what was used stays', async () => {
      const key = await keyOf('ada', '2/day');
      expect(await statuses(3, key)).toEqual({ 200: 2, 429: 1 });
      await updateApiKey(database.db, key.id, { quota: '4/day' });
      expect(await statuses(3, key)).toEqual({ 200: 2, 429: 1 });
      await updateApiKey(database.db, key.id, { quota: '1/day' });
      expect(await statuses(1, key)).toEqual({ 429: 1 });
      expect(await usage(database.db, { key: key.id })).toMatchObject([{ used: 4 }]);
    });

    test('unlimited only counts, and states no limit', async () => {
      const key = await keyOf('ada', 'unlimited/month');
      expect((await call(key)).headers['ratelimit-limit']).toBeUndefined();
      expect(await usage(database.db, { key: key.id })).toMatchObject([{ used: 1, quota: null }]);
    });

    test('what is refused for another reason is not counted', async () => {
      const key = await keyOf('ada', '5/month');
      expect((await call(key, {}, '/v1/scoped')).statusCode).toBe(403);
      expect(await usage(database.db, { key: key.id })).toEqual([]);
    });

    test('an owner has one quota over all keys, a person in the browser none', async () => {
      const [one, two] = [await keyOf('bob'), await keyOf('bob')];
      expect(await statuses(3, one)).toEqual({ 200: 3 });
      expect(await statuses(4, two)).toEqual({ 200: 2, 429: 2 });
      expect((await kit.inject({ url: '/v1/things', headers: { 'x-act-as': 'bob' } })).statusCode).toBe(200);
      expect(await usage(database.db, { owner: users['bob']!.id })).toMatchObject([{ period: 'day', used: 5, quota: 5 }]);
    });

    test('a tenant has one quota over its members; a request that one quota refuses is counted in none', async () => {
      const key = await keyOf('ada', '100/month');
      const north = { 'x-team': 'north' };
      expect(await statuses(15, key, north)).toEqual({ 200: 12, 429: 3 });
      expect(await usage(database.db, { tenant: 'north' })).toMatchObject([{ used: 12, quota: 12 }]);
      expect(await usage(database.db, { key: key.id })).toMatchObject([{ used: 12, quota: 100 }]);
      expect((await call(key, { 'x-team': 'south' })).statusCode).toBe(200);
      // Not a member there: nothing is counted for a tenant that is only named.
      const stranger = await keyOf('cleo');
      await call(stranger, north);
      expect(await usage(database.db, { tenant: 'north' })).toMatchObject([{ used: 12 }]);
    });

    test('owners see what they used and cannot set a quota; others see nothing of it', async () => {
      const key = await keyOf('cleo', '9/month');
      await call(key);
      await settled();
      const list = async (who: string, query = '') =>
        (await kit.inject({ url: `/v1/quotas${query}`, headers: { 'x-act-as': who } })).json<{ items: object[] }>().items;
      expect(await list('cleo', `?key_id=${key.id}`)).toMatchObject([
        { kind: 'key', key_id: key.id, period: 'month', used: '1', quota: '9' },
      ]);
      expect(await list('bob', `?key_id=${key.id}`)).toEqual([]);
      expect(await list('bob')).toMatchObject([{ kind: 'owner' }]);
      const change = await kit.inject({
        method: 'PATCH',
        url: `/v1/api-keys/${key.id}`,
        headers: { 'x-act-as': 'cleo' },
        payload: { quota: '900/month' },
      });
      expect(change.statusCode).toBe(422);
      expect(change.json()).toMatchObject({ errors: [{ code: 'not_allowed', location: ['body', 'quota'] }] });
    });

    test('a period that is over is recorded once, and the next one begins with nothing used', async () => {
      const key = await keyOf('ada', '2/month');
      expect(await statuses(3, key)).toEqual({ 200: 2, 429: 1 });
      clock.set(new Date('2030-02-01T00:00:30.000Z'));
      expect(await recordPeriods(kit.app.db, clock), 'clocks may differ by a minute').toBe(0);
      expect(await statuses(1, key)).toEqual({ 200: 1 });
      clock.set(new Date('2030-02-01T00:01:30.000Z'));
      const counts = await Promise.all([recordPeriods(kit.app.db, clock), recordPeriods(kit.app.db, clock)]);
      expect(counts.reduce((sum, count) => sum + count)).toBe(recorded.length);
      expect(await recordPeriods(kit.app.db, clock)).toBe(0);
      expect(recorded.filter(({ of }) => of === key.id)).toEqual([
        expect.objectContaining({
          kind: 'key',
          owner: users['ada']!.id,
          period: 'month',
          from: '2030-01-01T00:00:00.000Z',
          until: '2030-02-01T00:00:00.000Z',
          used: 2,
          quota: 2,
        }),
      ]);
      expect(recorded.filter(({ kind }) => kind === 'tenant')).toMatchObject([{ of: 'north', used: 12, quota: 12 }]);
      expect(new Set(recorded.map(({ id }) => id)).size).toBe(recorded.length);
      expect(await usage(database.db, { key: key.id })).toMatchObject([{ used: 1 }]);
      expect(await usage(database.db, { key: key.id, at: new Date('2030-01-15T00:00:00Z') })).toMatchObject([{ used: 2 }]);
    });
  });
});
