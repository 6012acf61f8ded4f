import { afterEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { createApp } from '../app/assemble/create-app.ts';
import type { App } from '../app/declare/module.ts';
import type { AppOptions } from '../app/declare/options.ts';
import type { Authenticator } from '../auth/request/authenticator.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { errors } from '../errors/error-map.ts';
import { allowAny, any, hasScopes, isAuthenticated, isOwner, isReadOnly, isStaff } from '../permissions/index.ts';
import { clientThrottle, tenantThrottle, userThrottle } from '../throttle/index.ts';
import { Controller, type Mountable } from './compile/controller.ts';
import type { Middleware } from './exchange/middleware.ts';
import { raw } from './declare/raw.ts';
import { route } from './declare/route.ts';

const user = { id: 'ann', username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false };
const Out = z.object({ ok: z.boolean() });

/** `x-user: ann`, with `x-scopes: a:b c:d` for a credential that carries scopes. */
const byHeader: Authenticator = {
  name: 'header',
  challenge: 'Header',
  securityScheme: {},
  authenticate: ({ headers }) => {
    const id = headers['x-user'];
    if (typeof id !== 'string') return null;
    if (id === 'mallory') throw coreErrors.invalid_credentials();
    const scopes = typeof headers['x-scopes'] === 'string' ? headers['x-scopes'].split(' ').filter(Boolean) : null;
    return { user: { ...user, id, is_staff: id === 'root' }, scheme: 'header', scopes };
  },
};

let app: App;
afterEach(() => app.close());

function serve(controller: Mountable, options: Partial<AppOptions> = {}): void {
  app = createApp({
    database: 'sqlite::memory:',
    authenticators: [byHeader],
    mount: { '/v1': { '/x': controller } },
    log: { level: 'silent' },
    ...options,
  });
}

async function call(method: string, url = '/v1/x', headers: Record<string, string> = {}, payload?: string | object) {
  const response = await app.inject({ method: method as 'GET', url, headers, ...(payload === undefined ? {} : { payload }) });
  return {
    status: response.statusCode,
    headers: response.headers,
    body: response.body === '' ? undefined : (JSON.parse(response.body) as Record<string, unknown>),
  };
}
const as = (id: string, scopes?: string) => ({ 'x-user': id, ...(scopes === undefined ? {} : { 'x-scopes': scopes }) });

describe('permissions on requests', () => {
  class GuardedController extends Controller {
    static override readonly permission = isAuthenticated;
    read = route.get('/', { response: Out, permission: hasScopes(), scope: 'things:read' }, () => ({ ok: true }));
    either = route.get('/either', { response: Out, permission: hasScopes({ allowUnscoped: true }), scope: 'things:read' }, () => ({
      ok: true,
    }));
    staff = route.get('/staff', { response: Out, permission: isStaff }, () => ({ ok: true }));
  }

  test('401 without or with bad credentials, 403 with the reason, 200', async () => {
    serve(GuardedController);
    expect(await call('GET')).toMatchObject({
      status: 401,
      body: { code: 'not_authenticated' },
      headers: { 'www-authenticate': 'Header' },
    });
    expect(await call('GET', '/v1/x', as('mallory'))).toMatchObject({
      status: 401,
      body: { code: 'invalid_credentials' },
      headers: { 'www-authenticate': 'Header' },
    });
    expect(await call('GET', '/v1/x', as('ann'))).toMatchObject({
      status: 403,
      body: { code: 'scope_required', required_scope: 'things:read' },
    });
    expect(await call('GET', '/v1/x', as('ann', 'things:write'))).toMatchObject({
      status: 403,
      body: { code: 'insufficient_scope', required_scope: 'things:read' },
    });
    expect(await call('GET', '/v1/x', as('ann', 'things:*'))).toMatchObject({ status: 200, body: { ok: true } });
    expect(await call('GET', '/v1/x/either', as('ann'))).toMatchObject({ status: 200 });
    expect(await call('GET', '/v1/x/staff', as('ann'))).toMatchObject({ status: 403, body: { code: 'permission_denied' } });
    expect(await call('GET', '/v1/x/staff', as('root'))).toMatchObject({ status: 200 });
    expect(await call('HEAD', '/v1/x/staff', as('ann'))).toMatchObject({ status: 403, body: undefined });
  });

  test('a permission about the object is settled by authorize, or the answer is refused', async () => {
    const things: Record<string, { owner_id: string }> = { '1': { owner_id: 'ann' }, '2': { owner_id: 'bob' } };
    let wrote = 0;
    class OwnedController extends Controller {
      one = route.get(
        '/:id',
        { params: z.object({ id: z.string() }), response: Out, permission: any(isOwner(), isStaff) },
        async ({ params, authorize }) => {
          await authorize(things[params.id]);
          return { ok: true };
        },
      );
      hidden = route.get(
        '/:id/hidden',
        { params: z.object({ id: z.string() }), response: Out, permission: isOwner('owner_id', { hide: true }) },
        async ({ params, authorize }) => {
          await authorize(things[params.id]);
          return { ok: true };
        },
      );
      forgets = route.post('/forgets', { response: Out, permission: isOwner() }, () => {
        wrote += 1;
        return { ok: true };
      });
    }
    serve(OwnedController);
    expect(await call('GET', '/v1/x/1', as('ann'))).toMatchObject({ status: 200 });
    expect(await call('GET', '/v1/x/2', as('ann'))).toMatchObject({ status: 403, body: { code: 'permission_denied' } });
    expect(await call('GET', '/v1/x/2', as('root'))).toMatchObject({ status: 200 });
    expect(await call('GET', '/v1/x/1')).toMatchObject({ status: 401 });
    const { request_id: _a, ...foreign } = (await call('GET', '/v1/x/2/hidden', as('ann'))).body ?? {};
    const { request_id: _b, ...missing } = (await call('GET', '/v1/x/3/hidden', as('ann'))).body ?? {};
    expect(foreign).toEqual(missing);
    expect(foreign).toMatchObject({ status: 404, code: 'not_found' });
    expect(await call('POST', '/v1/x/forgets', as('ann'))).toMatchObject({ status: 403, body: { code: 'permission_denied' } });
    expect(wrote).toBe(1);
  });

  test('QUERY is a read with a body', async () => {
    class SearchController extends Controller {
      search = route.query('/', { body: z.object({ ok: z.boolean() }), response: Out, permission: isReadOnly }, ({ body }) => body);
      write = route.post('/', { body: z.object({ ok: z.boolean() }), response: Out, permission: isReadOnly }, ({ body }) => body);
    }
    serve(SearchController);
    expect(await call('QUERY', '/v1/x', {}, { ok: true })).toMatchObject({ status: 200, body: { ok: true } });
    expect(await call('QUERY', '/v1/x', {}, { ok: 'yes' })).toMatchObject({ status: 422 });
    expect(await call('QUERY')).toMatchObject({ status: 415 });
    expect(await call('POST', '/v1/x', {}, { ok: true })).toMatchObject({ status: 403 });
    expect((await call('PUT')).headers['allow']).toBe('OPTIONS, POST, QUERY');
  });
});

describe('CSRF', () => {
  const cookie: Authenticator = {
    ...byHeader,
    name: 'session',
    verifyCsrf: ({ headers }) => {
      if (headers['x-csrf-token'] !== 'good') throw coreErrors.csrf_failed();
    },
  };
  class FormController extends Controller {
    read = route.get('/', { response: Out, permission: isAuthenticated }, () => ({ ok: true }));
    search = route.query('/', { body: Out, response: Out, permission: isAuthenticated }, () => ({ ok: true }));
    write = route.post('/', { response: Out, permission: isAuthenticated }, () => ({ ok: true }));
    login = route.post('/login', { response: Out, permission: allowAny, csrf: false, throttles: [clientThrottle('100/s')] }, () => ({
      ok: true,
    }));
  }

  test('is proved on unsafe requests of a cookie credential, and only there', async () => {
    serve(FormController, { authenticators: [cookie] });
    expect(await call('POST', '/v1/x', as('ann'))).toMatchObject({ status: 403, body: { code: 'csrf_failed' } });
    expect(await call('POST', '/v1/x', { ...as('ann'), 'x-csrf-token': 'good' })).toMatchObject({ status: 200 });
    expect(await call('GET', '/v1/x', as('ann'))).toMatchObject({ status: 200 });
    expect(await call('QUERY', '/v1/x', as('ann'), { ok: true })).toMatchObject({ status: 200 });
    expect(await call('POST', '/v1/x/login', as('ann'))).toMatchObject({ status: 200 });
  });

  test('is not asked of a credential the browser does not send by itself', async () => {
    serve(FormController);
    expect(await call('POST', '/v1/x', as('ann'))).toMatchObject({ status: 200 });
  });
});

describe('throttles', () => {
  class BusyController extends Controller {
    static override readonly throttles = [userThrottle('3/min')];
    read = route.get('/', { response: Out, permission: allowAny, throttles: [clientThrottle('2/min')] }, () => ({ ok: true }));
    fails = route.get('/fails', { response: Out, permission: allowAny }, () => {
      throw coreErrors.conflict();
    });
  }

  test('headers are on every governed answer, refusals too; over the limit is 429 with Retry-After', async () => {
    serve(BusyController);
    expect((await call('GET', '/v1/x', as('ann'))).headers).toMatchObject({ 'ratelimit-limit': '2', 'ratelimit-remaining': '1' });
    await call('GET', '/v1/x', as('ann'));
    const refused = await call('GET', '/v1/x', as('ann'));
    expect(refused).toMatchObject({ status: 429, body: { code: 'throttled' } });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(refused.headers['ratelimit-remaining']).toBe('0');
    expect((await call('GET', '/v1/x/fails', as('ann'))).headers).toMatchObject({ 'ratelimit-limit': '3' });
  });

  test('a client over its budget does not make the app look for a tenant', async () => {
    let asked = 0;
    const tenant = () => {
      asked += 1;
      return 'acme';
    };
    serve(BusyController, { throttles: [tenantThrottle('5/min')], tenant });
    for (let index = 0; index < 4; index += 1) await call('GET', '/v1/x');
    expect(asked).toBe(2);
  });

  test('of the app that count clients count requests for unknown addresses and wrong methods too', async () => {
    serve(BusyController, { throttles: [clientThrottle('2/min', { name: 'all' })] });
    expect(await call('GET', '/nowhere')).toMatchObject({ status: 404, headers: { 'ratelimit-remaining': '1' } });
    expect(await call('DELETE', '/v1/x')).toMatchObject({ status: 405, headers: { 'ratelimit-remaining': '0' } });
    expect(await call('GET', '/nowhere')).toMatchObject({ status: 429, body: { code: 'throttled' } });
    expect(await call('GET', '/v1/x')).toMatchObject({ status: 429 });
  });
});

describe('versions', () => {
  class OldError extends Error {}
  class ThingController extends Controller {
    read = route.get('/', { permission: allowAny }, () => {
      throw new OldError('x');
    });
  }
  const mark = (name: string): Middleware => ({ name, onResponse: ({ reply }) => void reply.header(`x-${name}`, 'yes') });

  test('have their own errors, middleware and deprecation; the app’s apply to all', async () => {
    serve(ThingController, {
      errors: errors().on(OldError, { status: 400, code: 'by_app' }),
      middleware: [mark('app')],
      mount: {
        '/v1': {
          controllers: { '/x': ThingController },
          errors: errors().on(OldError, { status: 410, code: 'by_version' }),
          middleware: [mark('v1')],
          deprecated: true,
        },
        '/v2': { '/x': ThingController },
      },
    });
    const first = await call('GET', '/v1/x');
    expect(first).toMatchObject({ status: 410, body: { code: 'by_version' }, headers: { 'x-v1': 'yes', 'x-app': 'yes' } });
    const second = await call('GET', '/v2/x');
    expect(second).toMatchObject({ status: 400, body: { code: 'by_app' }, headers: { 'x-app': 'yes' } });
    expect(second.headers).not.toHaveProperty('x-v1');
    expect((await call('GET', '/nowhere')).headers).toMatchObject({ 'x-app': 'yes' });
    expect(app.routes.filter(({ hidden }) => !hidden).map(({ path, deprecated, middleware }) => [path, deprecated, middleware])).toEqual([
      ['/v1/x', true, ['app', 'v1']],
      ['/v2/x', false, ['app']],
    ]);
  });
});

describe('answers', () => {
  class AnswerController extends Controller {
    none = route.delete('/', { permission: isAuthenticated }, async () => {});
    created = route.post('/', { response: Out, status: 201, permission: isAuthenticated }, ({ reply }) => {
      reply.header('location', '/v1/x/1');
      return { ok: true };
    });
    chosen = route.get('/chosen', { response: Out, permission: allowAny }, ({ reply }) => {
      reply.code(503);
      return { ok: false };
    });
    text = route.get('/text', { response: raw('text/csv; charset=utf-8'), permission: allowAny }, () => 'a,b\n');
    stale = route.get('/stale', { response: Out, permission: allowAny }, ({ reply }) => {
      reply.header('etag', '"1"').header('cache-control', 'max-age=60');
      throw coreErrors.not_found();
    });
  }

  test('have the declared status, or the one the handler chose; a failed one keeps none of its headers', async () => {
    serve(AnswerController);
    expect(await call('DELETE', '/v1/x', as('ann'))).toMatchObject({ status: 204, body: undefined });
    expect(await call('POST', '/v1/x', as('ann'))).toMatchObject({ status: 201, headers: { location: '/v1/x/1' } });
    expect(await call('GET', '/v1/x/chosen')).toMatchObject({ status: 503, body: { ok: false } });
    const text = await app.inject('/v1/x/text');
    expect([text.headers['content-type'], text.body]).toEqual(['text/csv; charset=utf-8', 'a,b\n']);
    const stale = await call('GET', '/v1/x/stale');
    expect(stale.status).toBe(404);
    expect(stale.headers).not.toHaveProperty('etag');
    expect(stale.headers).not.toHaveProperty('cache-control');
  });

  test('a trailing slash and an empty JSON object where nothing is taken are accepted', async () => {
    serve(AnswerController);
    expect((await call('DELETE', '/v1/x/', as('ann'), {})).status).toBe(204);
  });
});

describe('a handler that holds the event loop', () => {
  function hold(): void {
    const end = performance.now() + 60;
    while (performance.now() < end);
  }
  class SlowController extends Controller {
    quick = route.get('/', { permission: allowAny }, async () => {
      await Promise.resolve();
    });
    hog = route.get('/hog', { permission: allowAny }, hold);
    late = route.get('/late', { permission: allowAny }, async () => {
      await new Promise((resolve) => setImmediate(resolve));
      hold();
    });
  }
  let lines: string[];
  function serveSlow(warnBlockingMs: number): void {
    lines = [];
    serve(SlowController, {
      settings: { warnBlockingMs },
      log: { level: 'warn', hooks: { logMethod: (args) => void lines.push(String(args[1])) } },
    });
  }

  test('before its first await is named', async () => {
    serveSlow(20);
    await call('GET', '/v1/x/hog');
    expect(lines).toEqual([expect.stringMatching(/^SlowController\.hog blocked the event loop for \d+ ms/) as string]);
  });

  test('after an await is among those the warning names', async () => {
    serveSlow(20);
    await app.start();
    await call('GET', '/v1/x/late');
    await vi.waitFor(() =>
      expect(lines.join()).toMatch(/the event loop was blocked for \d+ ms while these handlers were under way: .*SlowController\.late/),
    );
  });

  test('is not watched when the setting is 0', async () => {
    serveSlow(0);
    await app.start();
    await call('GET', '/v1/x/hog');
    await call('GET', '/v1/x/late');
    expect(lines).toEqual([]);
  });
});

test('middleware around the handler can answer for it, and sees its value', async () => {
  let calls = 0;
  class CachedController extends Controller {
    read = route.get('/', { response: Out, permission: allowAny }, () => {
      calls += 1;
      return { ok: true };
    });
  }
  let kept: unknown;
  const cache: Middleware = { name: 'cache', handle: async (_, next) => (kept ??= await next()) };
  serve(CachedController, { middleware: [cache] });
  await call('GET');
  expect(await call('GET')).toMatchObject({ status: 200, body: { ok: true } });
  expect(calls).toBe(1);
});
