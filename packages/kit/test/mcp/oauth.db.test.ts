import {
  Client,
  discoverOAuthProtectedResourceMetadata,
  extractWWWAuthenticateParams,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createApp, migrateApp, type App } from '../../src/app/index.ts';
import { accounts, createUser } from '../../src/contrib/accounts/index.ts';
import { apiKeys, createApiKey } from '../../src/contrib/apikeys/index.ts';
import { jwtBearer } from '../../src/contrib/jwt/index.ts';
import { mcp } from '../../src/contrib/mcp/index.ts';
import { Controller, route } from '../../src/http/index.ts';
import { all, hasScopes, isStaff } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { fakeClock } from '../../src/testing/fake-clock.ts';
import { Provider, type Claims } from '../jwt/provider.ts';
import { fetchThrough } from './fetch-through.ts';

const RESOURCE = 'http://localhost/mcp';
const METADATA = 'http://localhost/.well-known/oauth-protected-resource/mcp';
const Count = z.object({ count: z.number() });

class OrderController extends Controller {
  list = route.get(
    '/',
    { permission: hasScopes(), scope: 'orders:read', tool: true, summary: 'Count the orders', response: Count },
    () => ({ count: 1 }),
  );
  place = route.post(
    '/',
    { permission: hasScopes(), scope: 'orders:write', tool: true, summary: 'Place an order', response: Count },
    () => ({ count: 2 }),
  );
  close = route.post(
    '/close',
    { permission: all(hasScopes(), isStaff), scope: 'orders:close', tool: true, summary: 'Close all orders', response: Count },
    () => ({
      count: 3,
    }),
  );
}

describeDatabases('access tokens for mcp()', (database) => {
  const clock = fakeClock('2026-06-01T12:00:00Z');
  let provider: Provider;
  let twin: Provider;
  let app: App;
  let without: App;

  beforeAll(async () => {
    [provider, twin] = [await new Provider().start(), await new Provider().start()];
    const shared = { mount: { '/v1': { '/orders': OrderController } }, log: { level: 'silent' as const }, clock };
    const audience = ['orders', RESOURCE];
    app = createApp({
      ...shared,
      title: 'Orders',
      database: database.db,
      modules: [accounts(), apiKeys(), mcp()],
      authenticators: [jwtBearer({ issuer: provider.url, audience, provision: true })],
    });
    await migrateApp(app);
    await app.ready();
    without = await createApp({ ...shared, database: await database.open(), modules: [accounts(), apiKeys(), mcp()] }).ready();
  });
  afterAll(async () => {
    await app.close();
    await without.close();
    await Promise.all([provider.stop(), twin.stop()]);
  });

  const token = (claims: Claims = {}, from = provider) => from.token(clock.now(), { aud: RESOURCE, scope: 'orders:read', ...claims });
  const post = async (bearer: string | null, method: string, params: object = {}, of: App = app) => {
    const response = await fetchThrough(of)(RESOURCE, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    return { status: response.status, challenge: response.headers.get('www-authenticate') ?? '', text: await response.text(), response };
  };
  const call = (bearer: string, name: string) => post(bearer, 'tools/call', { name, arguments: {} });
  const listed = async (bearer: string) =>
    [...(await post(bearer, 'tools/list')).text.matchAll(/"name":"(order_\w+)"/g)].map(([, name]) => name);

  describe('the metadata of the resource', () => {
    test('is at the path-inserted and the root well-known address, as the official client reads it', async () => {
      const expected = {
        resource: RESOURCE,
        resource_name: 'Orders',
        authorization_servers: [provider.url],
        bearer_methods_supported: ['header'],
        scopes_supported: ['orders:close', 'orders:read', 'orders:write'],
      };
      expect(await discoverOAuthProtectedResourceMetadata(RESOURCE, {}, fetchThrough(app))).toEqual(expected);
      const root = await fetchThrough(app)('http://localhost/.well-known/oauth-protected-resource');
      expect([root.status, await root.json()]).toEqual([200, expected]);
    });

    test('is missing where no access tokens are accepted, and is not told to another host', async () => {
      expect((await fetchThrough(without)(METADATA)).status).toBe(404);
      expect((await post(null, 'tools/list', {}, without)).challenge).not.toContain('resource_metadata');
      expect((await fetchThrough(app)(METADATA.replace('localhost', 'evil.example'))).status).toBe(403);
    });
  });

  test('a request without a token learns where to get one, and for which scopes', async () => {
    const { status, challenge, response } = await post(null, 'tools/list');
    expect(status).toBe(401);
    expect(challenge).toBe(`Bearer realm="api", resource_metadata="${METADATA}", scope="orders:close orders:read orders:write"`);
    expect(extractWWWAuthenticateParams(response)).toMatchObject({
      resourceMetadataUrl: new URL(METADATA),
      scope: 'orders:close orders:read orders:write',
    });
  });

  test('it learns of each scheme that is accepted: tokens bound to a key have their own', async () => {
    const bound = await createApp({
      mount: { '/v1': { '/orders': OrderController } },
      log: { level: 'silent' },
      clock,
      database: await database.open(),
      settings: { apiServers: ['http://localhost'] },
      modules: [accounts(), apiKeys(), mcp()],
      authenticators: [jwtBearer({ issuer: provider.url, audience: RESOURCE, provision: true, dpop: true })],
    }).ready();
    const { challenge, response } = await post(null, 'tools/list', {}, bound);
    const added = `, resource_metadata="${METADATA}", scope="orders:close orders:read orders:write"`;
    expect(challenge).toBe(`Bearer realm="api"${added}, DPoP realm="api", algs="ES256 ES384 ES512 EdDSA Ed25519 PS256 RS256"${added}`);
    expect(extractWWWAuthenticateParams(response)).toMatchObject({ resourceMetadataUrl: new URL(METADATA) });
    await bound.close();
  });

  test.each([
    ['https://gateway.example/api', 'https://gateway.example/api'],
    ['https://gateway.example/', 'https://gateway.example'],
    ['/api', 'http://localhost/api'],
  ])('behind a proxy at %s, the resource is the URL that clients use', async (server, base) => {
    const behind = await createApp({
      mount: { '/v1': { '/orders': OrderController } },
      log: { level: 'silent' },
      clock,
      database: await database.open(),
      settings: { apiServers: [server] },
      modules: [accounts(), apiKeys(), mcp()],
      authenticators: [jwtBearer({ issuer: provider.url, audience: [`${base}/mcp`], provision: true })],
    }).ready();
    const { challenge } = await post(null, 'tools/list', {}, behind);
    expect(challenge).toContain(`resource_metadata="${base}/.well-known/oauth-protected-resource/mcp"`);
    expect(await (await fetchThrough(behind)(METADATA)).json()).toMatchObject({ resource: `${base}/mcp` });
    expect((await post(await token({ aud: `${base}/mcp` }), 'tools/list', {}, behind)).text).toContain('"order_list"');
    await behind.close();
  });

  test('scopes are named as the provider spells them, and a provider that cannot name the URL has an audience of its own', async () => {
    const guid = '6e74172b-be56-4843-9ff4-e66a39bb12e3';
    const entra = await createApp({
      mount: { '/v1': { '/orders': OrderController } },
      log: { level: 'silent' },
      clock,
      database: await database.open(),
      modules: [accounts(), apiKeys(), mcp({ audience: guid })],
      authenticators: [jwtBearer({ issuer: provider.url, audience: ['orders', guid], scopes: 'api://orders/', provision: true })],
    }).ready();
    const spelled = ['api://orders/orders:close', 'api://orders/orders:read', 'api://orders/orders:write'];
    expect(await (await fetchThrough(entra)(METADATA)).json()).toMatchObject({ scopes_supported: spelled });
    expect((await post(null, 'tools/list', {}, entra)).challenge).toContain(`scope="${spelled.join(' ')}"`);
    const bearer = await token({ aud: guid, scope: undefined, scp: 'api://orders/orders:read' });
    expect((await post(bearer, 'tools/list', {}, entra)).text).toContain('"order_list"');
    const refused = await post(bearer, 'tools/call', { name: 'order_place', arguments: {} }, entra);
    expect([refused.status, refused.challenge]).toEqual([403, expect.stringContaining('scope="api://orders/orders:write"')]);
    for (const aud of ['orders', RESOURCE]) expect((await post(await token({ aud }), 'tools/list', {}, entra)).status).toBe(401);
    await entra.close();
    // Tokens of Entra have the short name, and clients ask for the long one.
    const short = await createApp({
      mount: { '/v1': { '/orders': OrderController } },
      log: { level: 'silent' },
      clock,
      database: await database.open(),
      modules: [accounts(), apiKeys(), mcp({ audience: guid })],
      authenticators: [jwtBearer({ issuer: provider.url, audience: guid, requestedScopePrefix: `api://${guid}/`, provision: true })],
    }).ready();
    const plain = await post(await token({ aud: guid, scope: undefined, scp: 'orders:read' }), 'tools/list', {}, short);
    expect(plain.text).toContain('"order_list"');
    expect((await post(null, 'tools/list', {}, short)).challenge).toContain(`api://${guid}/orders:read`);
    await short.close();
  });

  test('the official client lists the tools of the token’s scopes and calls them', async () => {
    const client = new Client({ name: 'test-client', version: '1' });
    const requestInit = { headers: { authorization: `Bearer ${await token()}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(RESOURCE), { requestInit, fetch: fetchThrough(app) }));
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['order_list']);
    expect((await client.callTool({ name: 'order_list', arguments: {} })).structuredContent).toEqual({ count: 1 });
    await client.close();
  });

  describe('the audience', () => {
    test('of another service is refused here, also where the API itself accepts it', async () => {
      for (const aud of ['orders', ['orders', 'https://other.example/mcp'], `${RESOURCE}/`, 'http://localhost', 'http://LOCALHOST/mcp']) {
        const refused = await call(await token({ aud }), 'order_list');
        expect([aud, refused.status]).toEqual([aud, 401]);
        expect(refused.challenge).toContain('error="invalid_token"');
        expect(refused.challenge).toContain(`resource_metadata="${METADATA}"`);
      }
      const bearer = await token({ aud: 'orders' });
      const direct = await app.inject({ method: 'GET', url: '/v1/orders', headers: { authorization: `Bearer ${bearer}` } });
      expect(direct.statusCode).toBe(200);
    });

    test('may be one of several', async () => {
      expect((await call(await token({ aud: ['orders', RESOURCE] }), 'order_list')).status).toBe(200);
    });
  });

  describe('a missing scope', () => {
    test('of an access token is HTTP 403 with the scope to ask for; the tool is not listed', async () => {
      const bearer = await token();
      expect(await listed(bearer)).toEqual(['order_list']);
      const refused = await call(bearer, 'order_place');
      expect([refused.status, refused.challenge]).toEqual([
        403,
        `Bearer realm="api", error="insufficient_scope", scope="orders:write", resource_metadata="${METADATA}"`,
      ]);
      expect(extractWWWAuthenticateParams(refused.response)).toMatchObject({ error: 'insufficient_scope', scope: 'orders:write' });
      expect(refused.text).toContain('insufficient_scope');
    });

    test('is decided by the same hierarchy as on the routes', async () => {
      for (const [scope, status] of [
        ['orders:*', 200],
        ['orders:write', 200],
        ['*', 200],
        ['orders:writer', 403],
        ['order:write', 403],
        ['', 403],
      ] as const) {
        const bearer = await token({ scope });
        const direct = await app.inject({
          method: 'POST',
          url: '/v1/orders',
          headers: { authorization: `Bearer ${await token({ scope, aud: 'orders' })}` },
        });
        expect([scope, (await call(bearer, 'order_place')).status, direct.statusCode]).toEqual([scope, status, status]);
      }
    });

    test('is not told where more than a scope is missing: the tool does not exist', async () => {
      const answer = async (name: string) => {
        const { status, text } = await call(await token({ scope: '' }), name);
        return `${status} ${text.replaceAll(name, '…')}`;
      };
      expect(await answer('order_close')).toBe(await answer('order_nothing'));
      expect(await answer('order_close')).toContain('-32602');
    });

    test('of an API key is no 403: what the key lacks does not exist', async () => {
      const user = await createUser(database.db, { username: 'keeper' });
      const { raw } = await createApiKey(database.db, { user, name: 'k', scopes: ['orders:read'] });
      const missing = await call(raw, 'order_place');
      expect([missing.status, missing.challenge]).toEqual([200, '']);
      expect(missing.text.replaceAll('order_place', '…')).toBe((await call(raw, 'order_nothing')).text.replaceAll('order_nothing', '…'));
    });
  });

  test('a token that is expired, forged or of another provider is refused with where to get another', async () => {
    const now = Math.floor(clock.now().getTime() / 1000);
    for (const bearer of [await token({ exp: now - 60 }), await token({}, twin), `${(await token()).slice(0, -8)}AAAAAAAA`]) {
      const { status, challenge } = await call(bearer, 'order_list');
      expect(status).toBe(401);
      expect(challenge).toContain(`resource_metadata="${METADATA}"`);
    }
  });
});
