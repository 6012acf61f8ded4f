import { spawn, type ChildProcess } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { accounts } from '../../src/contrib/accounts/index.ts';
import { jwtBearer } from '../../src/contrib/jwt/index.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { hasScopes } from '../../src/permissions/index.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';

interface Served {
  readonly issuer: string;
  readonly process: ChildProcess;
}

class OrderController extends Controller {
  list = route.get('/', { permission: hasScopes(), scope: 'orders:read', response: jsonSchema<object>({}) }, ({ user }) => ({
    user: user.username,
  }));
}

async function serve(): Promise<Served> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'serve-oidc.ts')], { stdio: ['ignore', 'pipe', 'inherit'] });
  const issuer = await new Promise<string>((done, failed) => {
    child.once('exit', (code) => failed(new Error(`the provider exited with ${code}`)));
    child.stdout.on('data', (chunk: Buffer) => /http:\S+/.test(chunk.toString()) && done(chunk.toString().trim()));
  });
  return { issuer, process: child };
}

const API = 'https://orders.example';
let provider: Served;
/** The same software, the same clients, other keys: what an attacker can run. */
let twin: Served;
let app: TestApp;

beforeAll(async () => {
  [provider, twin] = await Promise.all([serve(), serve()]);
  app = await testApp({
    modules: [accounts()],
    authenticators: [jwtBearer({ issuer: provider.issuer, audience: 'orders', typ: 'at+jwt', provision: true, dpop: true })],
    settings: { apiServers: [API] },
    mount: { '/v1': { '/orders': OrderController } },
  });
}, 120_000);
afterAll(async () => {
  provider.process.kill();
  twin.process.kill();
  await app.close();
});

async function token(
  { issuer }: Served,
  { client = 'orders-job', resource = 'https://orders.example', scope = 'orders:read', proof = '' } = {},
): Promise<string> {
  const body = new URLSearchParams({ grant_type: 'client_credentials', resource, ...(scope === '' ? {} : { scope }) });
  const authorization = `Basic ${Buffer.from(`${client}:${encodeURIComponent('a secret of the test')}`).toString('base64')}`;
  const response = await fetch(`${issuer}/token`, {
    method: 'POST',
    headers: { authorization, ...(proof === '' ? {} : { dpop: proof }) },
    body,
  });
  const { access_token, ...rest } = (await response.json()) as { access_token?: string };
  if (access_token === undefined) throw new Error(`no token: ${JSON.stringify(rest)}`);
  return access_token;
}

const get = async (bearer: string) => {
  const response = await app.app.inject({ method: 'GET', url: '/v1/orders', headers: { authorization: `Bearer ${bearer}` } });
  return { status: response.statusCode, body: response.json() };
};

test(
  'a token of a real provider authenticates its client; another audience, scope or provider does not',
  { timeout: 120_000 },
  async () => {
    expect(await get(await token(provider))).toMatchObject({ status: 200, body: { user: 'orders-job' } });
    expect(await get(await token(provider, { client: 'other-job' }))).toMatchObject({ status: 200, body: { user: 'other-job' } });
    expect(await get(await token(provider, { resource: 'https://billing.example' }))).toMatchObject({ status: 401 });
    expect(await get(await token(provider, { scope: 'orders:write' }))).toMatchObject({
      status: 403,
      body: { code: 'insufficient_scope' },
    });
    expect(await get(await token(twin))).toMatchObject({ status: 401 });
    // The twin's signature under the claims of the real one: same kid, other key.
    const [header, , signature] = (await token(twin)).split('.');
    const [, claims] = (await token(provider)).split('.');
    expect(await get(`${header}.${claims}.${signature}`)).toMatchObject({ status: 401 });
  },
);

test(
  'a token that the provider bound to a key is accepted with a proof of the key, and with nothing else',
  { timeout: 120_000 },
  async () => {
    const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
    const jwk = await exportJWK(publicKey);
    const proofOf = (htm: string, htu: string, claims: object = {}): Promise<string> =>
      new SignJWT({ htm, htu, jti: randomUUID(), ...claims })
        .setProtectedHeader({ typ: 'dpop+jwt', alg: 'ES256', jwk })
        .setIssuedAt()
        .sign(privateKey);
    const bound = await token(provider, { proof: await proofOf('POST', `${provider.issuer}/token`) });
    const ath = createHash('sha256').update(bound).digest('base64url');
    const ask = async (scheme: string, dpop?: string) => {
      const headers = { authorization: `${scheme} ${bound}`, ...(dpop === undefined ? {} : { dpop }) };
      return (await app.app.inject({ method: 'GET', url: '/v1/orders', headers })).statusCode;
    };
    const dpop = await proofOf('GET', `${API}/v1/orders`, { ath });
    expect([await ask('DPoP', dpop), await ask('DPoP', dpop)]).toEqual([200, 401]);
    expect([await ask('Bearer'), await ask('DPoP'), await ask('DPoP', await proofOf('GET', `${API}/v1/orders`))]).toEqual([401, 401, 401]);
  },
);
