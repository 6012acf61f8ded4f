import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type App, createApp } from '../../src/app/index.ts';
import type { User } from '../../src/auth/index.ts';
import { jwtBearer, type JwtBearerOptions } from '../../src/contrib/jwt/index.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { isAuthenticated } from '../../src/permissions/index.ts';
import { fakeClock } from '../../src/testing/fake-clock.ts';
import { type Claims, newKey, Provider, type SigningKey } from './provider.ts';

const person: User = { id: 'ada', username: 'ada', email: null, is_active: true, is_staff: false, is_superuser: false };

class WhoController extends Controller {
  who = route.get('/', { permission: isAuthenticated, response: jsonSchema<object>({}) }, async ({ user, principal, caller }) => ({
    user: user.username,
    scopes: principal.scopes,
    tenant: (await caller()).tenant,
  }));
  follow = route.stream(
    '/follow',
    { permission: isAuthenticated, response: jsonSchema<object>({}), heartbeatMs: 20 },
    async function* ({ signal }) {
      yield { data: {} };
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    },
  );
}

const clock = fakeClock('2026-06-01T12:00:00Z');
let provider: Provider;
const started: App[] = [];
beforeAll(async () => {
  provider = await new Provider().start();
});
afterAll(async () => {
  for (const app of started) await app.close();
  await provider.stop();
});

async function start(options: Partial<JwtBearerOptions> = {}): Promise<App> {
  const app = createApp({
    database: 'sqlite::memory:',
    authenticators: [jwtBearer({ issuer: provider.url, audience: 'orders', find: () => person, ...options })],
    tenant: ({ principal }) => principal?.tenant ?? null,
    mount: { '/v1': { '/who': WhoController } },
    log: { level: 'silent' },
    clock,
  });
  started.push(app);
  return app.ready();
}

async function get(app: App, claims: Claims = {}, key?: SigningKey) {
  const token = await provider.token(clock.now(), { aud: 'orders', ...claims }, key === undefined ? {} : { key });
  const response = await app.inject({ url: '/v1/who', headers: { authorization: `Bearer ${token}` } });
  return { status: response.statusCode, body: response.json() };
}

test.each([undefined, true, 'ada', {}, { id: 'ada' }, { id: '', is_active: true }])(
  '`find` that returned %j has found nobody: 500 invalid_rule',
  async (found) => {
    expect(await get(await start({ find: () => found as never }))).toMatchObject({ status: 500, body: { code: 'invalid_rule' } });
  },
);

describe('the algorithm of a signature', () => {
  test('is one of RS256, PS256, ES256, EdDSA and Ed25519 unless others are listed', async () => {
    const usual = await Promise.all(['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'].map((alg) => newKey(alg, alg)));
    const others = await Promise.all(['ES384', 'RS512'].map((alg) => newKey(alg, alg)));
    const [first] = provider.keys as [SigningKey];
    provider.keys = [first, ...usual, ...others];
    const app = await start();
    for (const key of usual) expect([key.alg, (await get(app, {}, key)).status]).toEqual([key.alg, 200]);
    for (const key of others) expect([key.alg, (await get(app, {}, key)).status]).toEqual([key.alg, 401]);
    const listed = await start({ algorithms: ['ES384'] });
    for (const key of [...usual, ...others])
      expect([key.alg, (await get(listed, {}, key)).status]).toEqual([key.alg, key.alg === 'ES384' ? 200 : 401]);
    provider.keys = [first];
  });
});

describe('an application that finds users itself', () => {
  test('gets the claims of a verified token, and decides', async () => {
    const seen: Claims[] = [];
    const app = await start({
      find: async (claims) => {
        seen.push(claims);
        return claims.sub === 'ada' ? person : claims.sub === 'ida' ? { ...person, is_active: false } : null;
      },
    });
    expect(await get(app, { sub: 'ada', dept: 'north' })).toMatchObject({ status: 200, body: { user: 'ada' } });
    expect(seen).toMatchObject([{ sub: 'ada', dept: 'north', iss: provider.url }]);
    expect((await get(app, { sub: 'ida' })).status).toBe(401);
    expect((await get(app, { sub: 'nobody' })).status).toBe(401);
    const before = seen.length;
    expect((await get(app, { sub: 'ada' }, await newKey('first'))).status).toBe(401);
    expect((await get(app, { sub: 'ada', aud: 'another' })).status).toBe(401);
    expect(seen).toHaveLength(before);
  });

  test('whose lookup fails answers 500, without the reason', async () => {
    const app = await start({ find: () => Promise.reject(new Error('directory at hunter2')) });
    const { status, body } = await get(app);
    expect(status).toBe(500);
    expect(JSON.stringify(body)).not.toContain('hunter2');
  });
});

test('scopes and the tenant are what functions of the claims return', async () => {
  const app = await start({
    scopes: ({ roles }) => (roles as string[]).map((role) => `role:${role}`),
    tenant: ({ orgs }) => (orgs as string[])[0] ?? null,
  });
  expect((await get(app, { roles: ['a', 'b'], scope: 'orders:read', orgs: ['north'] })).body).toEqual({
    user: 'ada',
    scopes: ['role:a', 'role:b'],
    tenant: 'north',
  });
  expect((await get(app, { roles: [], orgs: [] })).body).toEqual({ user: 'ada', scopes: [], tenant: null });
});

describe('a stream ends', () => {
  let isActive = true;
  let url = '';
  beforeAll(async () => {
    const app = await start({ find: () => ({ ...person, is_active: isActive }) });
    url = await app.listen({ port: 0 });
  });
  const follow = async (): Promise<Response> => {
    const exp = Math.floor(clock.now().getTime() / 1000) + 3600;
    const token = await provider.token(clock.now(), { aud: 'orders', exp });
    const response = await fetch(`${url}/v1/who/follow`, { headers: { authorization: `Bearer ${token}` } });
    expect(response.status).toBe(200);
    return response;
  };

  test('when its token expires', async () => {
    const stream = await follow();
    clock.advance(3_600_000 + 31_000);
    expect(await stream.text()).toMatch(/event: error\ndata: .*"code":"invalid_credentials"/);
  });

  test('when its user is deactivated', async () => {
    const stream = await follow();
    isActive = false;
    expect(await stream.text()).toMatch(/event: error\ndata: .*"code":"invalid_credentials"/);
  });
});
