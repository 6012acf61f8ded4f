import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { exportJWK } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createApp, migrateApp, type App } from '../../src/app/index.ts';
import { accounts, addGroupMember, createGroup, createUser, deactivateUser } from '../../src/contrib/accounts/index.ts';
import { accountsGroups } from '../../src/contrib/accounts/users/groups.ts';
import { ApiKeyController, apiKeys, createApiKey } from '../../src/contrib/apikeys/index.ts';
import { jwtBearer, type JwtBearerOptions } from '../../src/contrib/jwt/index.ts';
import { metrics } from '../../src/contrib/metrics/index.ts';
import { countQueries } from '../../src/db/index.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { HealthController } from '../../src/middleware/health.ts';
import { allowAny, hasScopes, isAuthenticated, isStaff } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { fakeClock } from '../../src/testing/fake-clock.ts';
import { type Claims, newKey, Provider, type SigningKey } from './provider.ts';

const publicPart = (key: SigningKey | undefined): string => key?.jwk.x ?? '';

interface Who {
  readonly username: string;
  readonly email: string | null;
  readonly scheme: string;
  readonly scopes: readonly string[] | null;
  readonly tenant: string | null;
}

class WhoController extends Controller {
  desk = route.get('/desk', { permission: isStaff, response: jsonSchema<object>({}) }, () => ({}));
  who = route.get('/', { permission: isAuthenticated, response: jsonSchema<Who>({}) }, async ({ user, principal, caller }) => ({
    username: user.username,
    email: user.email,
    scheme: principal.scheme,
    scopes: principal.scopes,
    tenant: (await caller()).tenant,
  }));
  scoped = route.get('/scoped', { permission: hasScopes(), scope: 'orders:read', response: jsonSchema<object>({}) }, () => ({}));
}

describeDatabases(
  'access tokens of identity providers',
  (database) => {
    const clock = fakeClock('2026-06-01T12:00:00Z');
    let provider: Provider;
    let twin: Provider;
    let app: App;
    const started: App[] = [];

    const start = async (options: Partial<JwtBearerOptions> = {}): Promise<App> => {
      const made = createApp({
        database: started.length === 0 ? database.db : await database.open(),
        modules: [accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }), apiKeys(), metrics({ path: '/metrics', permission: allowAny })],
        authenticators: [
          jwtBearer([
            { issuer: provider.url, audience: ['orders', 'orders-v2'], provision: true, groups: 'groups', tenant: 'org', ...options },
            { issuer: twin.url, audience: 'orders', provision: true },
          ]),
        ],
        tenant: ({ principal }) => principal?.tenant ?? null,
        mount: {
          '/v1': { '/who': WhoController, '/api-keys': ApiKeyController },
          '/': { '/health': HealthController },
        },
        log: { level: 'silent' },
        clock,
      });
      started.push(made);
      return made.ready();
    };

    beforeAll(async () => {
      [provider, twin] = [await new Provider().start(), await new Provider().start()];
      app = await start();
    });
    afterEach(() => provider.up());
    afterAll(async () => {
      for (const each of started) await each.close();
      await Promise.all([provider.stop(), twin.stop()]);
    });

    const get = async (token: string, url = '/v1/who', of: App = app) => {
      const response = await of.inject({ method: 'GET', url, headers: { authorization: `Bearer ${token}` } });
      return { status: response.statusCode, body: response.json(), challenge: response.headers['www-authenticate'] };
    };
    const token = (claims?: Claims, options?: Parameters<Provider['token']>[2]) => provider.token(clock.now(), claims, options);
    const b64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

    describe('a good token', () => {
      test('authenticates its user, created with the first request, by issuer and subject', async () => {
        const first = await get(
          await token({
            sub: 'ada-1',
            preferred_username: 'Ada.L',
            email: 'Ada@Example.com',
            email_verified: true,
            scope: 'orders:read openid',
            org: 'north',
          }),
        );
        expect(first).toMatchObject({
          status: 200,
          body: { username: 'ada.l', email: 'ada@example.com', scheme: 'jwt', scopes: ['orders:read', 'openid'], tenant: 'north' },
        });
        expect((await get(await token({ sub: 'ada-1', preferred_username: 'renamed' }))).body).toMatchObject({
          username: 'ada.l',
          tenant: null,
        });
        const other = await get(await twin.token(clock.now(), { sub: 'ada-1', preferred_username: 'ada.l' }));
        expect(other.status).toBe(200);
        expect(other.body.username).toMatch(/^ada\.l-[0-9a-f]{10}$/);
      });

      test('costs one statement, and a bad one none', async () => {
        await get(await token({ sub: 'counted' }));
        const good = await token({ sub: 'counted' });
        const counted = await countQueries(() => get(good));
        expect(counted.count).toBe(1);
        for (const bad of [
          `${good.slice(0, -20)}${'A'.repeat(20)}`,
          'abc',
          'a.b.c',
          `${b64({ alg: 'none' })}.${b64({ iss: provider.url })}.`,
        ]) {
          const none = await countQueries(() => get(bad));
          expect([bad, none.count]).toEqual([bad, 0]);
        }
      });

      test('of twenty first requests creates one user', async () => {
        const racing = await token({ sub: 'racer', preferred_username: 'racer' });
        const answers = await Promise.all(Array.from({ length: 20 }, () => get(racing)));
        expect(new Set(answers.map(({ status, body }) => `${status} ${body.username}`))).toEqual(new Set(['200 racer']));
        const rows = await database.db.query(`select id from users where username like 'racer%'`);
        expect(rows).toHaveLength(1);
      });

      test('is matched with an existing user by a verified address only, and only when asked', async () => {
        await createUser(database.db, { username: 'boss', email: 'boss@example.com', is_staff: true });
        const strange = await get(
          await token({ sub: 'thief-1', preferred_username: 'thief', email: 'boss@example.com', email_verified: false }),
        );
        expect(strange.body).toMatchObject({ username: 'thief', email: null });
        const verified = await get(
          await token({ sub: 'thief-2', preferred_username: 'thief2', email: 'boss@example.com', email_verified: true }),
        );
        expect(verified.body).toMatchObject({ username: 'thief2', email: null });
        const linking = await start({ linkVerifiedEmail: true });
        const unverified = await get(await token({ sub: 'thief-3', email: 'boss@example.com' }), '/v1/who', linking);
        expect(unverified.body.username).not.toBe('boss');
        // Other addresses, which are this one only once they are normalized: nobody has verified that one.
        for (const email of ['ｂoss@example.com', 'boſs@example.com', 'boss@example.ⅽom'])
          expect((await get(await token({ sub: `thief-${email}`, email, email_verified: true }), '/v1/who', linking)).body).toMatchObject({
            email: null,
          });
        const linked = await get(await token({ sub: 'boss-1', email: 'Boss@example.com', email_verified: true }), '/v1/who', linking);
        expect(linked.body).toMatchObject({ username: 'boss' });
      });

      test('of staff gives staff rights only with a second factor, where accounts() requires one', async () => {
        await createUser(database.db, { username: 'chief', email: 'chief@example.com', is_staff: true, is_superuser: true });
        const linking = await start({ linkVerifiedEmail: true });
        const chief = { sub: 'chief-1', email: 'chief@example.com', email_verified: true };
        const desk = async (claims: Claims, of = linking) => (await get(await token({ ...chief, ...claims }), '/v1/who/desk', of)).status;
        expect((await get(await token(chief), '/v1/who', linking)).body).toMatchObject({ username: 'chief' });
        for (const amr of [undefined, [], ['pwd'], ['otp'], 'mfa', ['MFA'], [['mfa']]])
          expect([amr, await desk({ amr })]).toEqual([amr, 403]);
        expect(await desk({ amr: ['pwd', 'mfa'] })).toBe(200);
        const byLevel = await start({ linkVerifiedEmail: true, secondFactor: ({ acr }) => acr === '2' });
        expect([await desk({ acr: '1', amr: ['mfa'] }, byLevel), await desk({ acr: '2' }, byLevel)]).toEqual([403, 200]);
      });

      test('that is bound to a key of its client is rejected as a plain bearer token, unless the option accepts it', async () => {
        for (const cnf of [{ jkt: 'a'.repeat(43) }, { 'x5t#S256': 'b'.repeat(43) }, {}, null, 'jkt'])
          expect(await get(await token({ sub: 'bound', cnf }))).toMatchObject({
            status: 401,
            body: { code: 'invalid_credentials', detail: expect.stringContaining('bound to a key of the client') },
            challenge: expect.stringContaining('error="invalid_token"'),
          });
        const behind = await start({ acceptBoundTokens: true });
        expect((await get(await token({ sub: 'bound', cnf: { jkt: 'a'.repeat(43) } }), '/v1/who', behind)).status).toBe(200);
      });

      test('of a deactivated user is rejected with the next request', async () => {
        const good = await token({ sub: 'leaver', preferred_username: 'leaver' });
        expect((await get(good)).status).toBe(200);
        const user = await app.users?.findByLogin(database.db, 'leaver');
        await deactivateUser(database.db, user?.id ?? '');
        expect(await get(good)).toMatchObject({
          status: 401,
          body: { code: 'invalid_credentials', detail: 'The user of the access token is deactivated.' },
        });
      });

      test('takes names that cannot be user names here', async () => {
        const odd = await get(await token({ sub: 'auth0|5f7c8ec7c33c6c004bbafe82', preferred_username: 'Zoë Ångström 🦊' }));
        expect(odd.status).toBe(200);
        const empty = await get(await token({ sub: '🦊', preferred_username: '🦊🦊' }));
        expect(empty.status).toBe(200);
      });
    });

    describe('groups', () => {
      test('change only where they are managed by the issuer, and an older token changes nothing', async () => {
        const managed = await createGroup(database.db, { name: 'editors', tenantKey: null, managedBy: provider.url });
        const local = await createGroup(database.db, { name: 'admins', tenantKey: null });
        const foreign = await createGroup(database.db, { name: 'auditors', tenantKey: null, managedBy: twin.url });
        const old = await token({ sub: 'member', preferred_username: 'member', groups: ['editors'] });
        await get(old);
        const user = await app.users?.findByLogin(database.db, 'member');
        const groups = () => accountsGroups.groupsOf(database.db, user?.id ?? '', null);
        expect(await groups()).toEqual([managed.id]);
        await addGroupMember(database.db, local.id, user?.id ?? '');
        clock.advance(60_000);
        await get(await token({ sub: 'member', groups: ['admins', 'auditors', 'unknown'] }));
        expect(await groups()).toEqual([local.id]);
        await get(old);
        expect(await groups()).toEqual([local.id]);
        await get(await token({ sub: 'member', groups: ['editors', 'auditors'] }));
        expect((await groups()).toSorted()).toEqual([local.id, managed.id].toSorted());
        expect(await groups()).not.toContain(foreign.id);
      });

      test('that become managed later are applied with the next token', async () => {
        const good = await token({ sub: 'late', preferred_username: 'late', groups: ['newcomers'] });
        await get(good);
        const group = await createGroup(database.db, { name: 'newcomers', tenantKey: null, managedBy: provider.url });
        await get(good);
        const user = await app.users?.findByLogin(database.db, 'late');
        expect(await accountsGroups.groupsOf(database.db, user?.id ?? '', null)).toEqual([group.id]);
      });
    });

    describe('is rejected', () => {
      const rejected = async (bad: string, detail: RegExp) => {
        const answer = await get(bad);
        expect(answer).toMatchObject({ status: 401, body: { code: 'invalid_credentials' } });
        expect(answer.body.detail).toMatch(detail);
        expect(answer.challenge).toBe(`Bearer realm="api", error="invalid_token", error_description="${answer.body.detail}"`);
      };

      test('with claims that are missing, wrong or out of time', async () => {
        const now = clock.now().getTime() / 1000;
        await rejected(await token({ aud: 'another-api' }), /another audience/);
        await rejected(await token({ aud: undefined }), /lacks a required claim/);
        await rejected(await token({ exp: undefined }), /lacks a required claim/);
        await rejected(await token({ iat: undefined }), /lacks a required claim/);
        await rejected(await token({ sub: undefined }), /lacks a required claim/);
        await rejected(await token({ sub: '' }), /lacks a required claim/);
        await rejected(await token({ sub: 'x'.repeat(256) }), /lacks a required claim/);
        for (const sub of ['a\0b', 'a\ud800b']) await rejected(await token({ sub }), /lacks a required claim/);
        await rejected(await token({ exp: now - 31 }), /has expired/);
        await rejected(await token({ nbf: now + 31 }), /not valid yet/);
        await rejected(await token({ iat: now + 31 }), /not valid yet/);
        await rejected(await token({ exp: 'tomorrow' }), /lacks a required claim/);
        await rejected(await token({ iat: -1e300, groups: ['staff'] }), /lacks a required claim/);
        for (const fine of [{ exp: now - 29 }, { nbf: now + 29 }, { iat: now + 29 }, { aud: ['other', 'orders-v2'] }])
          expect([fine, (await get(await token({ sub: 'alice-1', ...fine }))).status]).toEqual([fine, 200]);
      });

      test('with another algorithm, no signature, or one of another key', async () => {
        const payload = b64({ iss: provider.url, aud: 'orders', sub: 'x', iat: 0, exp: 9_999_999_999 });
        await rejected(`${b64({ alg: 'none' })}.${payload}.`, /malformed|algorithm/);
        await rejected(`${b64({ alg: 'none', kid: 'first' })}.${payload}.AAAA`, /algorithm/);
        // HMAC with what everybody can read: the public key, in each form it is published in.
        for (const secret of [JSON.stringify(provider.keys[0]?.jwk), publicPart(provider.keys[0]), '']) {
          const input = `${b64({ alg: 'HS256', kid: 'first' })}.${payload}`;
          await rejected(`${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`, /algorithm/);
        }
        const forged = await newKey('first');
        await rejected(await token({}, { key: forged }), /signature/);
        await rejected(await token({}, { key: await newKey('first', 'RS256') }), /key that its issuer does not publish/);
        const [header = '', body = '', signature = ''] = (await token()).split('.');
        await rejected(
          `${header}.${b64({ ...JSON.parse(Buffer.from(body, 'base64url').toString()), sub: 'admin' })}.${signature}`,
          /signature/,
        );
        await rejected(
          await token({}, { header: { crit: ['exp'], exp: 1 } }).catch(
            () => `${b64({ alg: 'ES256', kid: 'first', crit: ['x'], x: 1 })}.${body}.${signature}`,
          ),
          /algorithm|malformed/,
        );
      });

      test('when it says one issuer and is signed by another', async () => {
        await rejected(await twin.token(clock.now(), { iss: provider.url }), /key that its issuer|signature/);
        await rejected(await provider.token(clock.now(), { iss: twin.url }), /key that its issuer|signature/);
      });

      test('when it is huge, before anything of it is decoded', async () => {
        await rejected(`${(await token()).split('.')[0]}.${'A'.repeat(20_000)}.AAAA`, /longer than 16384 characters/);
      });

      test('of another type than asked for', async () => {
        const strict = await start({ typ: 'at+jwt' });
        expect((await get(await token(), '/v1/who', strict)).status).toBe(401);
        expect((await get(await token({}, { header: { typ: 'at+jwt' } }), '/v1/who', strict)).status).toBe(200);
      });

      test('by scopes, with the scope to ask for in the challenge', async () => {
        const answer = await get(await token({ scope: 'profile' }), '/v1/who/scoped');
        expect(answer).toMatchObject({ status: 403, body: { code: 'insufficient_scope', required_scope: 'orders:read' } });
        expect(answer.challenge).toBe('Bearer realm="api", error="insufficient_scope", scope="orders:read"');
        expect((await get(await token({ scp: ['orders:read'] }), '/v1/who/scoped')).status).toBe(200);
        const prefixed = await start({ scopes: 'api://orders/' });
        expect((await get(await token({ scp: 'api://orders/orders:read orders:write' }), '/v1/who', prefixed)).body.scopes).toEqual([
          'orders:read',
        ]);
        expect((await get(await token({ scope: 'orders:read' }), '/v1/who/scoped', prefixed)).status).toBe(403);
      });
    });

    describe('other credentials', () => {
      test('an API key, a token of an unknown issuer and one without an issuer are left to the next authenticator', async () => {
        const owner = await createUser(database.db, { username: 'key-owner' });
        const { raw } = await createApiKey(database.db, { user: owner, name: 'k', scopes: ['orders:read'] });
        expect((await get(raw)).body).toMatchObject({ username: 'key-owner', scheme: 'api_key' });
        expect((await get(await token({ iss: 'https://elsewhere.example' }))).body).toMatchObject({ status: 401, code: 'invalid_api_key' });
        expect((await get(await token({ iss: undefined }))).body).toMatchObject({ status: 401, code: 'invalid_api_key' });
      });

      test('a token cannot create an API key with scopes that it does not have', async () => {
        const post = async (scope: string, scopes: string[]) => {
          const authorization = `Bearer ${await token({ sub: 'minter', preferred_username: 'minter', scope })}`;
          return app.inject({ method: 'POST', url: '/v1/api-keys', headers: { authorization }, payload: { name: 'k', scopes } });
        };
        expect((await post('profile', ['orders:read'])).json()).toMatchObject({ status: 422, errors: [{ code: 'scope_not_grantable' }] });
        expect((await post('orders:read', ['orders:read'])).statusCode).toBe(201);
      });
    });

    // Nothing here depends on the database.
    describe.runIf(database.dialect === 'sqlite')('a provider', () => {
      const reads = () => provider.asked.filter((path) => path === '/keys').length;

      test('that is asked for an unknown key is asked at most once in 30 seconds, up or down', async () => {
        const own = await start();
        expect((await get(await token(), '/v1/who', own)).status).toBe(200);
        clock.advance(31_000);
        const flood = async () => {
          const unknown = await Promise.all(Array.from({ length: 20 }, (_, index) => newKey(`unknown-${index}`)));
          const tokens = await Promise.all(unknown.map((key) => token({}, { key })));
          const answers = await Promise.all(tokens.map((each) => get(each, '/v1/who', own)));
          expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
        };
        let before = reads();
        await flood();
        await flood();
        expect(reads() - before).toBe(1);
        clock.advance(31_000);
        provider.down();
        before = provider.asked.length;
        await flood();
        await flood();
        expect(provider.asked.length - before).toBe(1);
        expect((await get(await token(), '/v1/who', own)).status).toBe(200);
      });

      test('that rotates: the new key works at once, and a withdrawn one ends with the next read', async () => {
        const own = await start();
        const [old] = provider.keys as [SigningKey];
        expect((await get(await token(), '/v1/who', own)).status).toBe(200);
        clock.advance(31_000);
        const next = await newKey('second', 'RS256');
        provider.keys = [next, old];
        expect((await get(await token({}, { key: next }), '/v1/who', own)).status).toBe(200);
        expect((await get(await token({}, { key: old }), '/v1/who', own)).status).toBe(200);
        provider.keys = [next];
        clock.advance(601_000);
        // In the background first, then gone.
        await get(await token({}, { key: old }), '/v1/who', own);
        await expect.poll(async () => (await get(await token({}, { key: old }), '/v1/who', own)).status).toBe(401);
        expect((await get(await token({}, { key: next }), '/v1/who', own)).status).toBe(200);
        provider.keys = [old];
      });

      test('that withdrew a key long ago: a process without requests does not accept it once more', async () => {
        const own = await start();
        const [old] = provider.keys as [SigningKey];
        expect((await get(await token(), '/v1/who', own)).status).toBe(200);
        provider.keys = [await newKey('third')];
        clock.advance(1_201_000);
        expect((await get(await token({}, { key: old }), '/v1/who', own)).status).toBe(401);
        provider.keys = [old];
      });

      test('that is down: known keys stay good for hours, with a warning; without keys the response is 503', async () => {
        const own = await start();
        expect((await get(await token(), '/v1/who', own)).status).toBe(200);
        provider.down();
        clock.advance(5 * 3_600_000);
        expect((await get(await token(), '/v1/who', own)).status).toBe(200);
        const health = await own.inject('/health/ready');
        expect(health.statusCode).toBe(200);
        expect(health.json()).toMatchObject({
          status: 'ok',
          checks: {
            jwt_keys: { status: 'warning', detail: expect.stringContaining('read 300 minutes ago and stay valid') },
            jwt_keys_2: { status: 'ok' },
          },
        });
        const scraped = (await own.inject('/metrics')).body;
        expect(scraped).toContain(`kit_jwt_key_reads_total{issuer="${provider.url}",outcome="failed"} 1`);
        expect(scraped).toContain(`kit_jwt_key_age_seconds{issuer="${provider.url}"} 18000`);
        expect(scraped).toMatch(/kit_jwt_tokens_total\{issuer="[^"]+",outcome="accepted"\} 2/);
        const fresh = await start();
        const answer = await get(await token(), '/v1/who', fresh);
        expect(answer).toMatchObject({
          status: 503,
          body: { code: 'unavailable', detail: 'The identity provider cannot be reached. Try again later.' },
        });
        expect(JSON.stringify(answer.body)).not.toContain(provider.url);
        expect((await fresh.inject('/health/ready')).json()).toMatchObject({
          status: 'unavailable',
          checks: { jwt_keys: { status: 'failed' } },
        });
        // Other issuers and other credentials are not affected.
        expect((await get(await twin.token(clock.now()), '/v1/who', fresh)).status).toBe(200);
        provider.up();
        expect((await get(await token(), '/v1/who', fresh)).status).toBe(503);
        clock.advance(5001);
        expect((await get(await token(), '/v1/who', fresh)).status).toBe(200);
        expect((await fresh.inject('/health/ready')).json()).toMatchObject({ status: 'ok', checks: { jwt_keys: { status: 'ok' } } });
      });

      test.each<[string, (path: string, response: ServerResponse) => boolean]>([
        [
          'names another issuer',
          (path, response) =>
            path.includes('well-known') &&
            (response.end(JSON.stringify({ issuer: 'https://evil.example', jwks_uri: `${twin.url}/keys` })), true),
        ],
        [
          'sends its keys over plain http',
          (path, response) =>
            path.includes('well-known') && (response.end(JSON.stringify({ issuer: provider.url, jwks_uri: 'http://keys.example/' })), true),
        ],
        ['redirects', (_path, response) => (response.writeHead(302, { location: `${twin.url}/keys` }).end(), true)],
        ['answers with an error', (_path, response) => (response.writeHead(500).end('{"keys":[]}'), true)],
        ['returns no JSON', (_path, response) => (response.end('<html>'), true)],
        ['returns no keys', (path, response) => path === '/keys' && (response.end('{"keys":[]}'), true)],
        [
          'returns symmetric keys only',
          (path, response) => path === '/keys' && (response.end('{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"first"}]}'), true),
        ],
        [
          'returns more than anyone needs',
          (path, response) => path === '/keys' && (response.end(`{"keys":["${'x'.repeat(300_000)}"]}`), true),
        ],
      ])('that %s is not believed', async (_name, behave) => {
        const own = await start();
        provider.behave = behave;
        expect((await get(await token(), '/v1/who', own)).status).toBe(503);
        provider.up();
      });

      test(
        'that hangs counts as down after five seconds, and requests with other credentials do not wait',
        { timeout: 60_000 },
        async () => {
          const own = await start();
          provider.behave = (_path, response) => (response.write(' '), true);
          const waiting = get(await token(), '/v1/who', own);
          expect((await get(await twin.token(clock.now()), '/v1/who', own)).status).toBe(200);
          expect((await waiting).status).toBe(503);
        },
      );

      test('whose key set has entries that are not keys is used for the others', async () => {
        const own = await start();
        provider.extraKeys = [null, 'x', { kty: 'oct', k: 'c2VjcmV0', kid: 'sym' }, { kty: 'EC', use: 'enc', kid: 'e' }];
        expect((await get(await token(), '/v1/who', own)).status).toBe(200);
        provider.extraKeys = [];
      });

      test('whose key set has keys that cannot be used: a token that names one is rejected, and the others are used', async () => {
        const own = await start();
        const short = generateKeyPairSync('rsa', { modulusLength: 1024 });
        const unusable = {
          short: { ...short.publicKey.export({ format: 'jwk' }), alg: 'RS256' },
          text: { kty: 'RSA', n: '!', e: 'AQAB', alg: 'RS256' },
          empty: { kty: 'RSA', alg: 'RS256' },
          number: { kty: 'RSA', n: 5, e: 'AQAB', alg: 'RS256' },
          point: { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA', alg: 'ES256' },
          edwards: { kty: 'OKP', crv: 'Ed25519', x: 'AAAA', alg: 'EdDSA' },
          signing: { ...provider.keys[0]?.jwk, key_ops: ['sign'] },
          other: { ...provider.keys[0]?.jwk, key_ops: 'verify' },
        };
        provider.extraKeys = Object.entries(unusable).map(([kid, key]) => Object.assign({}, key, { kid }));
        expect((await get(await token(), '/v1/who', own)).status).toBe(200);
        const [, body = ''] = (await token()).split('.');
        for (const [kid, { alg = 'ES256' }] of Object.entries(unusable)) {
          const input = `${b64({ alg, kid })}.${body}`;
          const signature = kid === 'short' ? sign('sha256', Buffer.from(input), short.privateKey).toString('base64url') : 'A'.repeat(86);
          const answer = await get(`${input}.${signature}`, '/v1/who', own);
          expect([kid, answer.status, answer.body.detail]).toEqual([kid, 401, expect.stringContaining('does not publish')]);
        }
        provider.extraKeys = [];
      });

      test('that publishes more of a key than verifies a signature: the rest is not looked at', async () => {
        const own = await start();
        const [key] = provider.keys as [SigningKey];
        const whole = { ...(await exportJWK(key.privateKey)), kid: 'whole', alg: 'ES256', key_ops: ['sign', 'verify'], ext: false };
        provider.extraKeys = [whole];
        expect((await get(await token({}, { header: { kid: 'whole' } }), '/v1/who', own)).status).toBe(200);
        provider.extraKeys = [];
      });

      test('that has no key ids: each of its keys is tried, while it rotates and after', async () => {
        const own = await start();
        const [first] = provider.keys as [SigningKey];
        const [second, third] = [await newKey('second'), await newKey('third')];
        provider.keys = [];
        provider.extraKeys = [first, second].map(({ jwk }) => Object.assign({}, jwk, { kid: undefined }));
        const nameless = async (key: SigningKey, claims: Claims = {}) =>
          (await get(await token(claims, { key, header: { kid: undefined } }), '/v1/who', own)).body;
        expect(await nameless(first)).toMatchObject({ scheme: 'jwt' });
        expect(await nameless(second)).toMatchObject({ scheme: 'jwt' });
        expect((await nameless(third)).detail).toMatch(/signature/);
        expect((await nameless(second, { aud: 'another-api' })).detail).toMatch(/another audience/);
        [provider.keys, provider.extraKeys] = [[first], []];
      });
    });
  },
  {
    prepare: async (db) => {
      const app = createApp({ database: db, modules: [accounts(), apiKeys()], mount: {}, log: { level: 'silent' } });
      await migrateApp(app);
    },
  },
);

test('options are checked together, each with its remedy', () => {
  const problems = (options: unknown): string => {
    try {
      jwtBearer(options as never);
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  };
  const good = { issuer: 'https://id.example.com', audience: 'orders', provision: true };
  expect(problems(good)).toBe('');
  expect(problems({ ...good, issuer: 'http://id.example.com' })).toContain('must start with https://');
  expect(problems({ ...good, algorithms: ['HS256'] })).toContain('RS256');
  expect(problems({ ...good, algorithms: ['none'] })).not.toBe('');
  expect(problems({ ...good, audience: [] })).not.toBe('');
  expect(problems({ issuer: 'https://id.example.com', audience: 'orders' })).toContain('nothing defines the user of a token');
  expect(problems({ ...good, find: () => null })).toContain('both set');
  expect(problems([good, good])).toContain('given twice');
  expect(problems({ ...good, audiance: 'x' })).toContain('audience');
  expect(() => createApp({ database: 'sqlite::memory:', authenticators: [jwtBearer(good)], mount: {}, log: { level: 'silent' } })).toThrow(
    /no module stores users of identity providers.*Add accounts\(\)/s,
  );
});
