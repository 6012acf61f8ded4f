import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import type { Authenticator } from '../../src/auth/index.ts';
import { mcp } from '../../src/contrib/mcp/index.ts';
import { Controller, route } from '../../src/http/index.ts';
import { allowAny, isAuthenticated } from '../../src/permissions/index.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';
import { anonymousThrottle, tenantThrottle, userThrottle } from '../../src/throttle/throttles.ts';

// The endpoint has the throttles of the app, too: which budgets of a call has its request spent?

const bearer: Authenticator = {
  name: 'bearer',
  securityScheme: { type: 'http', scheme: 'bearer' },
  authenticate({ headers }) {
    const name = String(headers['authorization'] ?? '').replace('Bearer ', '');
    const user = { id: name, username: name, email: null, is_active: true, is_staff: false, is_superuser: false };
    return name === '' ? null : { user, scheme: 'bearer', credentialId: name, scopes: ['*'] };
  },
};
const facts = { tool: true, response: z.object({ ok: z.boolean() }) } as const;
class ThingController extends Controller {
  tenant = route.get(
    '/:tenant',
    { ...facts, permission: isAuthenticated, summary: 'Read the thing of a tenant', params: z.object({ tenant: z.string() }) },
    () => ({ ok: true }),
  );
  open = route.get('/', { ...facts, permission: allowAny, auth: [], summary: 'Open to every caller' }, () => ({ ok: true }));
}

let kit: TestApp;
beforeAll(async () => {
  kit = await testApp({
    authenticators: [bearer],
    tenant: ({ request }) => (request.params as { tenant?: string } | undefined)?.tenant ?? null,
    throttles: [tenantThrottle('2/hour'), anonymousThrottle('2/hour'), userThrottle('4/hour')],
    modules: [mcp()],
    mount: { '/v1': { '/things': ThingController } },
  });
});
afterAll(() => kit.close());

async function call(who: string, name: string, args: object = {}): Promise<'done' | 'throttled'> {
  const { body } = await kit.inject({
    method: 'POST',
    url: '/mcp',
    headers: { host: 'localhost', authorization: `Bearer ${who}`, accept: 'application/json, text/event-stream' },
    payload: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
  });
  expect(body).toMatch(/"structuredContent":\{"ok":true\}|throttled/);
  return body.includes('throttled') ? 'throttled' : 'done';
}

test('a call spends the budget of the tenant that is one of its arguments', async () => {
  const called = [await call('ada', 'thing_tenant', { tenant: 'acme' }), await call('bob', 'thing_tenant', { tenant: 'acme' })];
  expect(called).toEqual(['done', 'done']);
  expect(await call('cid', 'thing_tenant', { tenant: 'acme' })).toBe('throttled');
  expect((await kit.inject({ url: '/v1/things/acme', headers: { authorization: 'Bearer dan' } })).statusCode).toBe(429);
  expect(await call('cid', 'thing_tenant', { tenant: 'other' })).toBe('done');
});

test('a call of an operation that does not know the caller spends the budget of anonymous requests', async () => {
  expect([await call('eve', 'thing_open'), await call('fay', 'thing_open'), await call('gus', 'thing_open')]).toEqual([
    'done',
    'done',
    'throttled',
  ]);
});

test('a call spends the budget of its caller once', async () => {
  const called = [];
  for (let count = 0; count < 5; count += 1) called.push(await call('hal', 'thing_tenant', { tenant: `of hal ${count}` }));
  expect(called).toEqual(['done', 'done', 'done', 'done', 'throttled']);
});

test('a caller whose budget is spent gets the error of a tool with retry_after for a call, and HTTP 429 for a list', async () => {
  const headers = { host: 'localhost', authorization: 'Bearer eve', accept: 'application/json, text/event-stream' };
  const send = (payload: object) => kit.inject({ method: 'POST', url: '/mcp', headers, payload });
  const open = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'thing_tenant', arguments: { tenant: 'eves' } } };
  for (let count = 0; count < 4; count += 1) await kit.inject({ url: `/v1/things/own${count}`, headers });
  const called = await send(open);
  expect(called.statusCode).toBe(200);
  expect(called.body).toContain('"isError":true');
  expect(called.body).toMatch(/throttled[^]*retry_after/);
  const listed = await send({ jsonrpc: '2.0', id: 2, method: 'tools/list' });
  expect(listed).toMatchObject({ statusCode: 429 });
  expect(listed.headers['retry-after']).toMatch(/^\d+$/);
  // Rejected calls ran nothing: the tenant's own budget is whole.
  for (const who of ['fay', 'gus']) expect(await call(who, 'thing_tenant', { tenant: 'eves' })).toBe('done');
});
