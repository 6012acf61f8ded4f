import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Authenticator } from '../../src/auth/index.ts';
import { mcp } from '../../src/contrib/mcp/index.ts';
import { callerOverStdio } from '../../src/contrib/mcp/serve/stdio.ts';
import type { WithCaller } from '../../src/contrib/mcp/serve/protocol.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';

// What `kit mcp` does with one message, without its program.

const bearer: Authenticator = {
  name: 'bearer',
  challenge: 'Bearer realm="api"',
  securityScheme: { type: 'http', scheme: 'bearer' },
  authenticate({ headers }) {
    const [, name = ''] = /^Bearer (\w+)$/.exec(String(headers['authorization'] ?? '')) ?? [];
    const user = { id: name, username: name, email: null, is_active: true, is_staff: false, is_superuser: false };
    const claims = name === 'foreign' ? { claims: { aud: 'https://other.example' } } : {};
    return ['key', 'foreign'].includes(name) ? { user, scheme: 'bearer', scopes: ['*'], ...claims } : null;
  },
};

let kit: TestApp;
const as = (key: string): WithCaller => {
  const endpoint = kit.app.routes.find(({ controller }) => controller === 'KitMcpController');
  if (endpoint === undefined) throw new Error('no endpoint');
  return callerOverStdio(endpoint, key);
};
beforeAll(async () => {
  kit = await testApp({ authenticators: [bearer], modules: [mcp()], mount: {} });
  await kit.app.fastify.ready();
});
afterAll(() => kit.close());

test('a credential that is not accepted, and a token for another service, run nothing', async () => {
  let ran = 0;
  const run = async () => (ran += 1);
  await expect(as('nothing')(run)).rejects.toThrow(/authenticat|credential/i);
  await expect(as('foreign')(run)).rejects.toThrow('The access token is for another audience.');
  expect(ran).toBe(0);
  await as('key')(run);
  expect(ran).toBe(1);
});

test('arguments have the limits of a request’s body', async () => {
  const read = (given: Record<string, unknown>) => as('key')(async ({ argumentsOf }) => argumentsOf(1, given));
  const nested = (levels: number): unknown => {
    let value: unknown = 1;
    for (let level = 0; level < levels; level += 1) value = [value];
    return value;
  };
  for (const levels of [40, 100_000]) await expect(read({ a: nested(levels) })).rejects.toThrow(/nested/);
  await expect(read(Object.fromEntries(Array.from({ length: 10_001 }, (_, index) => [`a${index}`, 1])))).rejects.toThrow(/10000 members/);
  await expect(read(JSON.parse('{"a":{"__proto__":{"x":1}}}') as Record<string, unknown>)).rejects.toThrow(/forbidden key/);
  await expect(read({ a: '\u0000' })).rejects.toThrow(/JSON/);
  expect(await read({ a: [1, { b: 'c' }] })).toEqual({ a: [1, { b: 'c' }] });
});
