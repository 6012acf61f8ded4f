import { createHash, randomUUID } from 'node:crypto';
import { calculateJwkThumbprint, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type App, createApp, migrateApp } from '../../src/app/index.ts';
import type { User } from '../../src/auth/index.ts';
import { jwtBearer, type JwtBearerOptions } from '../../src/contrib/jwt/index.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { isAuthenticated } from '../../src/permissions/index.ts';
import { fakeClock } from '../../src/testing/fake-clock.ts';
import { sqlStorage, type ThrottleStorage } from '../../src/throttle/index.ts';
import { type Claims, newKey, Provider, type SigningKey } from './provider.ts';

const person: User = { id: 'ada', username: 'ada', email: null, is_active: true, is_staff: false, is_superuser: false };
class WhoController extends Controller {
  who = route.get('/', { permission: isAuthenticated, response: jsonSchema<object>({}) }, ({ user }) => ({ user: user.username }));
  say = route.post('/', { permission: isAuthenticated, response: jsonSchema<object>({}) }, ({ user }) => ({ user: user.username }));
  follow = route.stream('/follow', { permission: isAuthenticated, response: jsonSchema<object>({}) }, async function* ({ signal }) {
    yield { data: {} };
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
  });
}

// Behind a proxy that removes a path.
const PUBLIC = 'https://api.example.com/shop';
const URL_OF_WHO = `${PUBLIC}/v1/who`;
const clock = fakeClock('2026-06-01T12:00:00Z');
let provider: Provider;
let key: SigningKey;
let thumbprint: string;
const started: App[] = [];
beforeAll(async () => {
  provider = await new Provider().start();
  key = await newKey('client');
  thumbprint = await calculateJwkThumbprint(key.jwk);
});
afterAll(async () => {
  for (const app of started) await app.close();
  await provider.stop();
});

async function start(options: Partial<JwtBearerOptions> = {}, throttleStorage?: ThrottleStorage, apiServers = [PUBLIC]): Promise<App> {
  const app = createApp({
    database: 'sqlite::memory:',
    authenticators: [jwtBearer({ issuer: provider.url, audience: 'orders', find: () => person, dpop: true, ...options })],
    mount: { '/v1': { '/who': WhoController } },
    settings: { apiServers },
    ...(throttleStorage === undefined ? {} : { throttleStorage }),
    log: { level: 'silent' },
    clock,
  });
  started.push(app);
  await app.ready();
  await migrateApp(app);
  return app;
}

const boundToken = (claims: Claims = {}): Promise<string> => provider.token(clock.now(), { cnf: { jkt: thumbprint }, ...claims });

async function proofOf(token: string, claims: Claims = {}, header: Record<string, unknown> = {}, by = key): Promise<string> {
  const all = {
    htm: 'GET',
    htu: URL_OF_WHO,
    jti: randomUUID(),
    iat: Math.floor(clock.now().getTime() / 1000),
    ath: createHash('sha256').update(token).digest('base64url'),
    ...claims,
  };
  const present = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  const { kid: _kid, use: _use, ...jwk } = by.jwk;
  return new SignJWT(present).setProtectedHeader({ typ: 'dpop+jwt', alg: by.alg, jwk, ...header }).sign(by.privateKey);
}

async function get(app: App, token: string, proof: string | undefined, scheme = 'DPoP', method: 'GET' | 'POST' = 'GET') {
  const headers = { authorization: `${scheme} ${token}`, ...(proof === undefined ? {} : { dpop: proof }) };
  const response = await app.inject({ method, url: '/v1/who', headers });
  return { status: response.statusCode, challenge: String(response.headers['www-authenticate']), headers: response.headers };
}

test('a bound token is accepted with a proof of its key for this request, once', async () => {
  const app = await start();
  const token = await boundToken();
  const proof = await proofOf(token);
  expect((await get(app, token, proof)).status).toBe(200);
  const again = await get(app, token, proof);
  expect([again.status, again.challenge]).toEqual([401, expect.stringMatching(/^DPoP .*error="invalid_dpop_proof".*used before/)]);
  expect((await get(app, token, await proofOf(token))).status).toBe(200);
  expect((await get(app, token, await proofOf(token, { htu: `${URL_OF_WHO}?other=1#part`, htm: 'POST' }), 'dpop', 'POST')).status).toBe(
    200,
  );
  const { status, challenge } = await get(app, 'none', undefined, 'Basic');
  expect([status, challenge]).toEqual([401, expect.stringMatching(/^Bearer realm="api", DPoP realm="api", algs="ES256/)]);
});

test('a proof of another key, request, token or time is none', async () => {
  const app = await start();
  const token = await boundToken();
  const other = await newKey('other');
  const now = clock.now().getTime() / 1000;
  const cases: Record<string, () => Promise<string | undefined>> = {
    none: () => Promise.resolve(undefined),
    'not a token': () => Promise.resolve('proof'),
    'two proofs': async () => `${await proofOf(token)}, ${await proofOf(token)}`,
    'another key': () => proofOf(token, {}, {}, other),
    'a key that did not sign': () => proofOf(token, {}, { jwk: key.jwk }, other),
    'a private key in it': async () => proofOf(token, {}, { jwk: { ...key.jwk, d: 'AA' } }),
    'another type': () => proofOf(token, {}, { typ: 'JWT' }),
    'another method': () => proofOf(token, { htm: 'POST' }),
    'another path': () => proofOf(token, { htu: `${PUBLIC}/v1/who/` }),
    'the path behind the proxy': () => proofOf(token, { htu: 'https://api.example.com/v1/who' }),
    'another host': () => proofOf(token, { htu: 'https://api.example.org/shop/v1/who' }),
    'plain http': () => proofOf(token, { htu: URL_OF_WHO.replace('https', 'http') }),
    'another token': async () => proofOf(await boundToken({ jti: 'other' })),
    'no token': () => proofOf(token, { ath: undefined }),
    'no id': () => proofOf(token, { jti: undefined }),
    'a long id': () => proofOf(token, { jti: 'x'.repeat(257) }),
    'no time': () => proofOf(token, { iat: undefined }),
    'a text for a time': () => proofOf(token, { iat: 'now' }),
    'too old': () => proofOf(token, { iat: now - 100 }),
    'of the future': () => proofOf(token, { iat: now + 40 }),
  };
  for (const [name, make] of Object.entries(cases))
    expect([name, (await get(app, token, await make())).challenge]).toEqual([name, expect.stringContaining('error="invalid_dpop_proof"')]);
  expect((await get(app, token, await proofOf(token))).status).toBe(200);
});

test('a bound token is no bearer token, a free token has no proof, and a certificate is not proved by DPoP', async () => {
  const app = await start();
  const token = await boundToken();
  expect((await get(app, token, undefined, 'Bearer')).challenge).toContain('error="invalid_token"');
  expect((await get(app, token, await proofOf(token), 'Bearer')).status).toBe(401);
  const free = await provider.token(clock.now());
  expect((await get(app, free, undefined, 'Bearer')).status).toBe(200);
  expect((await get(app, free, await proofOf(free))).status).toBe(401);
  const both = await boundToken({ cnf: { jkt: thumbprint, 'x5t#S256': 'a'.repeat(43) } });
  expect((await get(app, both, await proofOf(both))).status).toBe(401);
  expect((await get(await start({ dpop: false }), token, await proofOf(token))).status).toBe(401);
});

test("with 'nonce' a proof needs the nonce of the API, which the first response has", async () => {
  const app = await start({ dpop: 'nonce' });
  const token = await boundToken();
  const first = await get(app, token, await proofOf(token));
  expect([first.status, first.challenge]).toEqual([401, expect.stringContaining('error="use_dpop_nonce"')]);
  const nonce = String(first.headers['dpop-nonce']);
  expect((await get(app, token, await proofOf(token, { nonce }))).status).toBe(200);
  for (const wrong of [`z${nonce}`, nonce.replace('.', 'z.'), '', 7])
    expect((await get(app, token, await proofOf(token, { nonce: wrong }))).challenge).toContain('error="use_dpop_nonce"');
  clock.advance(301_000);
  const renewed = await boundToken();
  expect((await get(app, renewed, await proofOf(renewed, { nonce }))).challenge).toContain('error="use_dpop_nonce"');
});

test('processes that share the throttle storage accept a proof once, and a storage that does not answer accepts none', async () => {
  const shared = new Map<string, number>();
  const storage = (): ThrottleStorage => ({
    take: (name, { count: limit }) => {
      const used = (shared.get(name) ?? 0) + 1;
      shared.set(name, used);
      return Promise.resolve({ allowed: used <= limit, limit, remaining: 0, resetMs: 0, nextMs: 0, retryAfterMs: 0 });
    },
    giveBack: () => Promise.resolve(),
  });
  const [one, two] = [await start({}, storage()), await start({}, storage())];
  const token = await boundToken();
  const proof = await proofOf(token);
  expect([(await get(one, token, proof)).status, (await get(two, token, proof)).status]).toEqual([200, 401]);
  const broken = { query: () => Promise.reject(new Error('away')) };
  const down = await start({}, sqlStorage({ db: broken, onFailure: 'allow' }));
  expect((await get(down, token, await proofOf(token))).status).toBe(503);
});

test('an open stream is looked at by the request that opened it: its proof is not asked for again', async () => {
  let looks = 0;
  const app = await start({ find: () => ((looks += 1), person) });
  const address = new URL(await app.listen({ port: 0 }));
  const token = await boundToken();
  const dpop = await proofOf(token, { htu: `${PUBLIC}/v1/who/follow` });
  const response = await fetch(new URL('/v1/who/follow', address), { headers: { authorization: `DPoP ${token}`, dpop } });
  const reader = response.body!.getReader();
  const { value } = await reader.read();
  expect(new TextDecoder().decode(value)).toContain('data: {}');
  let isOpen = true;
  void reader.read().then(({ done }) => (isOpen = !done));
  // Callers of open streams are looked up again and again.
  await expect.poll(() => looks, { timeout: 60_000 }).toBeGreaterThan(3);
  expect(isOpen).toBe(true);
  await reader.cancel();
}, 120_000);

test('without the URL of the API the app does not start', async () => {
  await expect(start({}, undefined, [])).rejects.toThrow(/API_SERVERS/);
});
