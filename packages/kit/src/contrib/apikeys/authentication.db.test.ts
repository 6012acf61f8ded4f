import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { prepareAccountsAndKeys, startKeyApp, type KeyApp } from '../../../test/key-app.ts';
import { accountsOf } from '../accounts/users/accounts.ts';
import { activateUser, deactivateUser } from '../accounts/users/manage-users.ts';
import type { User } from '../../auth/people/principal.ts';
import { countQueries } from '../../db/engine/query-observer.ts';
import { AccountController } from '../accounts/serve/controller.ts';
import { createUser } from '../accounts/users/manage-users.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { formatKey, newPrefix, newSecret } from './key/key.ts';
import { revokeApiKey } from './manage/revoke.ts';
import { rotateApiKey } from './manage/rotate.ts';

const DAY_MS = 86_400_000;

describeDatabases(
  'authentication',
  (database) => {
    let kit: KeyApp;
    let ada: User;
    beforeAll(async () => {
      kit = await startKeyApp(database.db, { keys: { failedAttempts: null, maxKeysPerOwner: 1000 } });
      ada = await kit.user('ada');
    });
    afterAll(() => kit.app.close());

    const withHeader = (raw: string) => ({ 'x-api-key': raw });
    const withBearer = (raw: string) => ({ authorization: `Bearer ${raw}` });
    const forms = [
      ['X-API-Key', withHeader],
      ['Authorization: Bearer', withBearer],
    ] as const;
    const inDays = (days: number) => new Date(kit.clock.now().getTime() + days * DAY_MS);
    const statusWith = async (raw: string) => (await kit.call('GET', '/v1/whoami', withHeader(raw))).status;

    describe.each(forms)('%s', (_name, header) => {
      test('a key authenticates as its owner, and the handler can see which key', async () => {
        const { raw, prefix } = await kit.key(ada);
        const { status, body } = await kit.call('GET', '/v1/whoami', header(raw));
        expect([status, body]).toEqual([200, { user: 'ada', scheme: 'api_key', key: prefix, key_by_request: prefix }]);
      });

      test('every kind of bad key is the same 401, after the same work', async () => {
        const revoked = await kit.key(ada);
        await revokeApiKey(kit.db, revoked.id);
        const expired = await kit.key(ada, { expiresAt: inDays(1) });
        const inactive = await kit.user(`inactive-${header.name}`);
        const ownerInactive = await kit.key(inactive);
        const management = accountsOf(kit.app.db).management(null);
        await deactivateUser(kit.db, inactive.id, management);
        const good = await kit.key(ada);
        const rotated = await kit.key(ada);
        await rotateApiKey(kit.db, rotated.id);
        kit.clock.advance(DAY_MS);
        const bad = {
          unknown: formatKey('kit', { prefix: newPrefix(), secret: newSecret() }),
          wrong_secret: formatKey('kit', { prefix: good.prefix, secret: newSecret() }),
          revoked: revoked.raw,
          expired: expired.raw,
          owner_inactive: ownerInactive.raw,
          rotated_away: rotated.raw,
          garbage: 'garbage',
          empty: '',
          mistyped: `${good.raw.slice(0, -1)}${good.raw.endsWith('0') ? '1' : '0'}`,
        };
        const answers: Record<string, unknown> = {};
        for (const [kind, raw] of Object.entries(bad)) {
          const { result, count } = await countQueries(() => kit.call('GET', '/v1/whoami', header(raw)));
          const { request_id, ...body } = result.body as Record<string, unknown>;
          expect(request_id).toBeTypeOf('string');
          answers[kind] = { status: result.status, challenge: result.headers['www-authenticate'], body };
          expect([kind, count]).toEqual([kind, ['garbage', 'empty', 'mistyped'].includes(kind) ? 0 : 1]);
        }
        const [first] = Object.values(answers);
        expect(first).toMatchObject({ status: 401, body: { code: 'invalid_api_key', status: 401 } });
        expect((first as { challenge: string }).challenge).toMatch(/realm=/);
        for (const answer of Object.values(answers)) expect(answer).toEqual(first);
      });
    });

    test('without a key a route that needs someone answers 401 with both challenges', async () => {
      const { status, body, headers } = await kit.call('GET', '/v1/whoami');
      expect([status, body.code]).toEqual([401, 'not_authenticated']);
      expect(headers['www-authenticate']).toMatch(/ApiKey .*Bearer /);
    });

    test('a bad key is refused even where anyone may come', async () => {
      expect((await kit.call('GET', '/v1/open')).status).toBe(200);
      expect((await kit.call('GET', '/v1/open', withHeader('garbage'))).status).toBe(401);
    });

    test('any one of several credentials is enough: a session beside a bad key', async () => {
      const { status, body } = await kit.call('GET', '/v1/whoami', { ...withHeader('garbage'), 'x-act-as': 'ada' });
      expect([status, body.scheme, body.key]).toEqual([200, 'session', null]);
    });

    test('the header may be spelled in any case, and so may the word Bearer', async () => {
      const { raw } = await kit.key(ada);
      expect((await kit.call('GET', '/v1/whoami', { 'X-Api-KEY': raw })).status).toBe(200);
      expect((await kit.call('GET', '/v1/whoami', { authorization: `bearer ${raw}` })).status).toBe(200);
    });

    test('two keys in one header are no key', async () => {
      const { raw } = await kit.key(ada);
      expect((await kit.call('GET', '/v1/whoami', withHeader(`${raw}, ${raw}`))).status).toBe(401);
    });

    describe('states', () => {
      test('created: active, and works', async () => {
        expect(await statusWith((await kit.key(ada)).raw)).toBe(200);
      });

      test('expiry passes: unusable from that moment on', async () => {
        const { raw } = await kit.key(ada, { expiresAt: inDays(1) });
        kit.clock.advance(DAY_MS - 1);
        expect(await statusWith(raw)).toBe(200);
        kit.clock.advance(1);
        expect(await statusWith(raw)).toBe(401);
      });

      test('owner deactivated: unusable, and resumes only when the owner is reactivated', async () => {
        const management = accountsOf(kit.app.db).management(null);
        const bob = await kit.user('bob');
        const { raw } = await kit.key(bob);
        await deactivateUser(kit.db, bob.id, management);
        expect(await statusWith(raw)).toBe(401);
        await activateUser(kit.db, bob.id, management);
        expect(await statusWith(raw)).toBe(200);
      });

      test('revoked: refused on the next request', async () => {
        const { id, raw } = await kit.key(ada);
        expect(await statusWith(raw)).toBe(200);
        await revokeApiKey(kit.db, id);
        expect(await statusWith(raw)).toBe(401);
      });

      test('rotated: the old value stops at once, the new one works; a revoked key is refused', async () => {
        const { id, raw } = await kit.key(ada);
        const rotated = await rotateApiKey(kit.db, id);
        expect([await statusWith(raw), await statusWith(rotated.raw)]).toEqual([401, 200]);
        await revokeApiKey(kit.db, id);
        await expect(rotateApiKey(kit.db, id)).rejects.toMatchObject({ status: 409, code: 'key_revoked' });
      });
    });

    describe('scopes', () => {
      test.each([
        [['orders:read'], 200, 403, 403],
        [['orders:*'], 200, 200, 403],
        [['*'], 200, 200, 200],
        [[], 403, 403, 403],
        [['orders:write', 'invoices:read'], 403, 200, 200],
      ])('a key with %j gets %i, %i and %i for orders:read, orders:write and invoices:read', async (scopes, ...expected) => {
        const { raw } = await kit.key(ada, { scopes });
        const answers = [
          await kit.call('GET', '/v1/orders', withHeader(raw)),
          await kit.call('POST', '/v1/orders', withHeader(raw)),
          await kit.call('GET', '/v1/invoices', withBearer(raw)),
        ];
        expect(answers.map(({ status }) => status)).toEqual(expected);
      });

      test('the 403 names the scope that is missing', async () => {
        const { raw } = await kit.key(ada, { scopes: ['orders:read'] });
        const { status, body } = await kit.call('GET', '/v1/invoices', withHeader(raw));
        expect([status, body.code, body.required_scope]).toEqual([403, 'insufficient_scope', 'invoices:read']);
      });

      test('an operation without a scope accepts any key', async () => {
        const { raw } = await kit.key(ada, { scopes: [] });
        expect((await kit.call('GET', '/v1/plain', withHeader(raw))).status).toBe(200);
      });

      test('a session is refused on a scoped operation, unless it allows credentials without scopes', async () => {
        const refused = await kit.call('GET', '/v1/orders', { 'x-act-as': 'ada' });
        expect([refused.status, refused.body.code, refused.body.required_scope]).toEqual([403, 'scope_required', 'orders:read']);
        expect((await kit.call('GET', '/v1/reports', { 'x-act-as': 'ada' })).status).toBe(200);
        const { raw } = await kit.key(ada, { scopes: ['orders:read'] });
        expect((await kit.call('GET', '/v1/reports', withHeader(raw))).status).toBe(403);
      });
    });
  },
  { prepare: prepareAccountsAndKeys, template: 'accounts_and_keys' },
);

describeDatabases(
  'failed attempts',
  (database) => {
    test('an address that presents too many bad keys gets 429 for bad keys, and good ones pass; other addresses do not get any', async () => {
      const kit = await startKeyApp(database.db, { keys: { failedAttempts: '5/min' }, app: { trustedProxies: ['loopback'] } });
      const { raw } = await kit.key(await kit.user('ada'));
      const bad = () => formatKey('kit', { prefix: newPrefix(), secret: newSecret() });
      const from = (address: string, key: string) =>
        countQueries(() => kit.call('GET', '/v1/whoami', { 'x-forwarded-for': address, authorization: `Bearer ${key}` }));
      for (let attempt = 0; attempt < 5; attempt += 1) expect((await from('192.0.2.1', bad())).result.status).toBe(401);
      const { result } = await from('192.0.2.1', bad());
      expect([result.status, result.body.code, result.headers['retry-after']]).toEqual([429, 'throttled', '12']);
      const malformed = await from('192.0.2.1', `${raw}x`);
      expect([malformed.result.status, malformed.count]).toEqual([429, 0]);
      expect((await from('192.0.2.1', raw)).result.status, 'a good key passes, known or not').toBe(200);
      const { raw: unknown } = await kit.key(await kit.user('grace'));
      expect((await from('192.0.2.1', unknown)).result.status).toBe(200);
      expect((await from('192.0.2.2', raw)).result.status).toBe(200);
      kit.clock.advance(12_000);
      expect((await from('192.0.2.1', raw)).result.status).toBe(200);
      for (let good = 0; good < 20; good += 1) expect((await from('192.0.2.3', raw)).result.status, 'good keys cost nothing').toBe(200);
      for (let garbage = 0; garbage < 5; garbage += 1) expect((await from('192.0.2.5', `kit_${garbage}`)).result.status).toBe(401);
      expect((await from('192.0.2.5', 'kit_5')).result.status, 'what is no key at all counts too').toBe(429);
      for (let other = 0; other < 20; other += 1) expect((await from('192.0.2.4', 'eyJhbGciOi.other.token')).result.status).toBe(401);
      expect((await from('192.0.2.4', raw)).result.status, 'tokens of another kind are no attempts').toBe(200);
      await kit.app.close();
    });

    test('of 200 forged keys at once, as many as the rate and a few more reach the database; as many good ones all pass', async () => {
      const kit = await startKeyApp(database.db, { keys: { failedAttempts: '5/min' }, app: { trustedProxies: ['loopback'] } });
      const { raw } = await kit.key(await kit.user('parallel'));
      const bad = () => formatKey('kit', { prefix: newPrefix(), secret: newSecret() });
      const at = (address: string, key: () => string) =>
        countQueries(() =>
          Promise.all(Array.from({ length: 200 }, () => kit.call('GET', '/v1/whoami', { 'x-forwarded-for': address, 'x-api-key': key() }))),
        );
      const startedMs = performance.now();
      const forged = await at('198.51.100.1', bad);
      const tookMs = performance.now() - startedMs;
      const statuses = forged.result.map(({ status }) => status);
      expect([statuses.filter((status) => status === 401).length, statuses.filter((status) => status === 429).length]).toEqual([5, 195]);
      // Besides those that the rate admits, one in 200 ms for at most a second: among them could be a good key.
      expect(forged.count).toBeGreaterThanOrEqual(5);
      expect(forged.count).toBeLessThanOrEqual(5 + 7 + tookMs / 200);
      // A key that has worked passes a flood of forged ones from its own address without waiting for a turn.
      expect((await at('198.51.100.3', () => raw)).result.every(({ status }) => status === 200)).toBe(true);
      const [flood, amid] = await Promise.all([
        at('198.51.100.1', bad),
        kit.call('GET', '/v1/whoami', { 'x-forwarded-for': '198.51.100.1', 'x-api-key': raw }),
      ]);
      expect([new Set(flood.result.map(({ status }) => status)), amid.status]).toEqual([new Set([429]), 200]);
      const good = await at('198.51.100.2', () => raw);
      expect(new Set(good.result.map(({ status }) => status))).toEqual(new Set([200]));
      await kit.app.close();
    });
  },
  { prepare: prepareAccountsAndKeys, template: 'accounts_and_keys' },
);

describeDatabases(
  'a key and a session in one browser',
  (database) => {
    test('the key decides and needs no CSRF proof; the cookie alone needs it', async () => {
      const kit = await startKeyApp(database.db, { app: { mount: { '/a': { '/account': AccountController } } } });
      const password = 'correct horse battery';
      const user = await createUser(database.db, { username: 'browser', password }, accountsOf(kit.app.db).management(null));
      const login = await kit.call('POST', '/a/account/login', { host: 'api.example.com' }, { login: 'browser', password });
      const cookie = String(login.headers['set-cookie']).split(';')[0] ?? '';
      const { raw } = await kit.key(user, { scopes: ['orders:write'] });
      const post = (headers: Record<string, string>) => kit.call('POST', '/v1/orders', { host: 'api.example.com', cookie, ...headers });
      expect(await post({ 'x-api-key': raw })).toMatchObject({ status: 200 });
      expect(await post({ authorization: `Bearer ${raw}` })).toMatchObject({ status: 200 });
      expect(await post({})).toMatchObject({ status: 403, body: { code: 'csrf_failed' } });
      expect(await post({ 'x-api-key': 'kit_nonsense' })).toMatchObject({ status: 403, body: { code: 'csrf_failed' } });
      const reading = await kit.call('GET', '/v1/whoami', { cookie, 'x-api-key': raw });
      expect(reading.body).toMatchObject({ user: 'browser', scheme: 'api_key' });
      expect((await kit.call('GET', '/v1/whoami', { cookie })).body).toMatchObject({ user: 'browser', scheme: 'session' });
      await kit.app.close();
    });
  },
  { prepare: prepareAccountsAndKeys, template: 'accounts_and_keys' },
);
