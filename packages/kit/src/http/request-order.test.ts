import { request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createApp } from '../app/assemble/create-app.ts';
import type { App } from '../app/declare/module.ts';
import type { Authenticator } from '../auth/request/authenticator.ts';
import { invalidCredentials } from '../auth/request/authenticate.ts';
import { hasRule } from '../permissions/built-ins.ts';
import type { Throttle } from '../throttle/throttle.ts';
import { Controller } from './compile/controller.ts';
import type { Middleware } from './exchange/middleware.ts';
import { route } from './declare/route.ts';
import type { Schema } from './declare/schema.ts';

const user = { id: 'ann', username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false };
let seen: string[] = [];
let app: App;
afterEach(() => app.close());

function schema(name: string): Schema<{ ok: true }> {
  return {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value) => {
        seen.push(`validate ${name}`);
        return { value: value as { ok: true } };
      },
      jsonSchema: { input: () => ({ type: 'object', properties: { ok: {} } }), output: () => ({ type: 'object', properties: { ok: {} } }) },
    },
  };
}

function throttle(phase: Throttle['phase'], count = 1000): Throttle {
  return {
    name: `by_${phase}`,
    phase,
    key: (context) => {
      seen.push(`${phase} throttle as ${context.principal?.user.id ?? 'anonymous'}`);
      return 'x';
    },
    rate: () => ({ count, periodMs: 60_000 }),
  };
}

function authenticator(outcome: 'good' | 'bad' | 'none'): Authenticator {
  return {
    name: 'test',
    challenge: 'Test realm="api"',
    securityScheme: {},
    authenticate: async () => {
      seen.push('authenticate');
      if (outcome === 'bad') throw invalidCredentials();
      return outcome === 'good' ? { user, scheme: 'test', scopes: null } : null;
    },
    verifyCsrf: () => void seen.push('csrf'),
  };
}

const middleware: Middleware = {
  name: 'observer',
  onRequest: () => void seen.push('onRequest'),
  handle: async (_, next) => {
    seen.push('around');
    const value = await next();
    seen.push('around again');
    return value;
  },
  onResponse: () => void seen.push('onResponse'),
  onFinish: () => void seen.push('onFinish'),
};

interface Behaviour {
  readonly auth?: 'good' | 'bad' | 'none';
  readonly allowed?: boolean;
  readonly clientCount?: number;
  readonly principalCount?: number;
}

function appWith({ auth = 'good', allowed = true, clientCount, principalCount }: Behaviour): App {
  seen = [];
  const permission = hasRule(async () => {
    seen.push('permission');
    return allowed;
  });
  class ThingController extends Controller {
    create = route.post('/', { query: schema('query'), body: schema('body'), response: schema('response'), permission }, ({ body }) => {
      seen.push('handler');
      return body;
    });
  }
  app = createApp({
    database: 'sqlite::memory:',
    authenticators: [authenticator(auth)],
    throttles: [throttle('client', clientCount), throttle('principal', principalCount)],
    middleware: [middleware],
    mount: { '/v1': { '/things': ThingController } },
    log: { level: 'silent' },
  });
  return app;
}

async function post(payload: string): Promise<number> {
  const { statusCode } = await app.inject({ method: 'POST', url: '/v1/things', headers: { 'content-type': 'application/json' }, payload });
  return statusCode;
}

test('the order: middleware, client throttle, authenticate, CSRF, principal throttle, permission, read, validate, handler', async () => {
  appWith({});
  expect(await post('{"ok":true}')).toBe(200);
  expect(seen).toEqual([
    'onRequest',
    'client throttle as anonymous',
    'authenticate',
    'csrf',
    'principal throttle as ann',
    'permission',
    'validate query',
    'validate body',
    'around',
    'handler',
    'around again',
    'onResponse',
    'onFinish',
  ]);
});

test('a client over its budget is refused before anybody authenticates it', async () => {
  appWith({ clientCount: 1 });
  await post('{"ok":true}');
  seen = [];
  expect(await post('{"ok":true}')).toBe(429);
  expect(seen).toEqual(['onRequest', 'client throttle as anonymous', 'onResponse', 'onFinish']);
});

test('a principal over its budget is refused before the permission is asked', async () => {
  appWith({ principalCount: 1 });
  await post('{"ok":true}');
  seen = [];
  expect(await post('{"ok":true}')).toBe(429);
  expect(seen).toEqual([
    'onRequest',
    'client throttle as anonymous',
    'authenticate',
    'csrf',
    'principal throttle as ann',
    'onResponse',
    'onFinish',
  ]);
});

test.each([
  [{ auth: 'bad' } as const, 401],
  [{ auth: 'none', allowed: false } as const, 401],
  [{ allowed: false } as const, 403],
])('a refused caller (%j) gets its refusal even for a body that is not JSON: it is never parsed', async (behaviour, status) => {
  appWith(behaviour);
  expect(await post('{not json')).toBe(status);
  expect(seen.filter((step) => step.startsWith('validate') || step === 'handler')).toEqual([]);
});

test('an unauthenticated caller is answered before its body has arrived', async () => {
  appWith({ auth: 'none', allowed: false });
  await app.listen({ port: 0 });
  const { port } = app.fastify.server.address() as AddressInfo;
  const headers = { 'content-type': 'application/json', 'content-length': '1000000' };
  const request = httpRequest({ host: '127.0.0.1', port, path: '/v1/things', method: 'POST', headers });
  const status = new Promise<number | undefined>((resolve, reject) => {
    request.once('response', (response) => resolve(response.statusCode)).once('error', reject);
  });
  request.write('{');
  expect(await status).toBe(401);
  request.destroy();
});

test('a 401 carries the challenges, a permitted but malformed request is a 400, an unacceptable one a 422', async () => {
  appWith({ auth: 'none', allowed: false });
  const refused = await app.inject({ method: 'POST', url: '/v1/things' });
  expect(refused.headers['www-authenticate']).toBe('Test realm="api"');
  await app.close();
  appWith({});
  expect(await post('{not json')).toBe(400);
  expect(await post('{"ko":true}')).toBe(422);
});
