import { wholeDocument } from '../../test/whole-document.ts';
import { afterEach, describe, expect, expectTypeOf, test } from 'vitest';
import { createApp } from '../app/assemble/create-app.ts';
import type { App } from '../app/declare/module.ts';
import type { AppOptions } from '../app/declare/options.ts';
import { errors } from '../errors/error-map.ts';
import { tenantThrottle } from '../throttle/throttles.ts';
import { allowAny, isAuthenticated, isOwner } from '../permissions/built-ins.ts';
import type { Authenticator } from '../auth/request/authenticator.ts';
import { Controller, type Mountable } from './compile/controller.ts';
import { jsonSchema } from './declare/json-schema.ts';
import { route, type Route } from './declare/route.ts';

const Any = jsonSchema<Record<string, unknown>>({ type: 'object' });
const byHeader: Authenticator = {
  name: 'header',
  securityScheme: { type: 'http', scheme: 'header' },
  authenticate: ({ headers: { 'x-user': id } }) =>
    typeof id === 'string'
      ? { user: { id, username: id, email: null, is_active: true, is_staff: false, is_superuser: false }, scheme: 'header', scopes: null }
      : null,
};

let app: App | undefined;
afterEach(() => app?.close());

async function serve(controller: Mountable, options: Partial<AppOptions> = {}) {
  app = createApp({
    database: 'sqlite::memory:',
    authenticators: [byHeader],
    mount: { '/v1': { '/x': controller } },
    log: { level: 'silent' },
    ...options,
  });
  return app;
}

describe('parameters of a path', () => {
  test('without a schema each is text, in the types, in the handler and in the document', async () => {
    class Plain extends Controller {
      one = route.get('/:id/parts/:part', { response: Any, permission: allowAny }, ({ params }) => {
        expectTypeOf(params).toExtend<{ readonly id: string; readonly part: string }>();
        // @ts-expect-error -- the path has no such parameter
        void params.other;
        return { ...params };
      });
    }
    const served = await serve(Plain);
    expect((await served.inject('/v1/x/7/parts/caf%C3%A9')).json()).toEqual({ id: '7', part: 'café' });
    expect(served.routes[0]?.params?.json).toMatchObject({ required: ['id', 'part'] });
  });
});

describe('caller()', () => {
  test('resolves user, principal and tenant once per request, for throttles and handlers alike', async () => {
    let asked = 0;
    class Mine extends Controller {
      one = route.get('/', { response: Any, permission: isAuthenticated, throttles: [tenantThrottle('9/min')] }, async ({ caller }) => {
        const { user, tenant, principal } = await caller();
        expectTypeOf(user.id).toEqualTypeOf<string>();
        await caller();
        return { user: user.id, tenant, scheme: principal.scheme };
      });
    }
    await serve(Mine, { tenant: async ({ user }) => `t${++asked}-${user?.id}` });
    const response = await app!.inject({ url: '/v1/x', headers: { 'x-user': 'ann' } });
    expect(response.json()).toEqual({ user: 'ann', tenant: 't1-ann', scheme: 'header' });
    expect(asked).toBe(1);
  });
});

test('authorize hands back the object it settled the permission for, never null', async () => {
  const rows: Record<string, { owner_id: string } | undefined> = { a: { owner_id: 'ann' } };
  class Owned extends Controller {
    one = route.get('/:id', { response: Any, permission: isOwner() }, async ({ params, authorize }) => {
      const row = await authorize(rows[params.id]);
      expectTypeOf(row).toEqualTypeOf<{ owner_id: string }>();
      return { ...row };
    });
  }
  await serve(Owned);
  const status = async (id: string, user: string) => (await app!.inject({ url: `/v1/x/${id}`, headers: { 'x-user': user } })).statusCode;
  expect([await status('a', 'ann'), await status('a', 'bob'), await status('b', 'ann')]).toEqual([200, 403, 404]);
});

describe('answers of several statuses', () => {
  class Several extends Controller {
    one = route.get(
      '/',
      {
        response: jsonSchema<{ a: number }>({ type: 'object', properties: { a: { type: 'integer' } }, additionalProperties: false }),
        responses: {
          200: { headers: { ETag: 'The version.' } },
          207: {
            description: 'Some failed.',
            response: jsonSchema({ type: 'object', properties: { b: {} }, additionalProperties: false }),
          },
          304: {},
        },
        query: jsonSchema<{ status?: number }>({ type: 'object', properties: { status: { type: 'integer' } } }),
        permission: allowAny,
      },
      ({ query, reply }) => {
        if (query.status !== undefined) void reply.code(query.status);
        return { a: 1, b: 2 };
      },
    );
  }

  test('each has its own schema, and none without one', async () => {
    await serve(Several);
    const get = async (status?: number) => {
      const response = await app!.inject(`/v1/x${status === undefined ? '' : `?status=${status}`}`);
      return [response.statusCode, response.body];
    };
    expect(await get()).toEqual([200, '{"a":1}']);
    expect(await get(207)).toEqual([207, '{"b":2}']);
    expect(await get(304)).toEqual([304, '']);
    expect(await get(202), 'an undeclared status keeps the schema of the route').toEqual([202, '{"a":1}']);
  });

  test('are in the document with their headers', async () => {
    const served = await serve(Several);
    const document = wholeDocument((await served.inject('/openapi.json')).json()) as {
      paths: Record<string, Record<string, { responses: object }>>;
    };
    expect(document.paths['/v1/x']?.['get']?.responses).toMatchObject({
      200: { headers: { ETag: { description: 'The version.' } } },
      207: { description: 'Some failed.', content: { 'application/json': { schema: { properties: { b: {} } } } } },
      304: { description: 'Not modified.' },
    });
  });
});

test('finish sees the value after every wrapper, and may answer without a body', async () => {
  const finish: NonNullable<Route['finish']> = ({ reply, request }, value, serialize) => {
    const text = serialize(value);
    void reply.header('etag', `"${text.length}"`);
    if (request.headers['if-none-match'] !== `"${text.length}"`) return text;
    void reply.code(304);
    return null;
  };
  class Base extends Controller {
    one: Route = { ...route.get('/', { response: Any, permission: allowAny }, () => ({ a: 1 })), finish };
  }
  class Wrapped extends Base {
    override one = this.wrap('one', {}, (_, next) => ({ ...(next() as object), b: 2 }));
  }
  await serve(Wrapped);
  const first = await app!.inject('/v1/x');
  expect([first.statusCode, first.body, first.headers['etag']]).toEqual([200, '{"a":1,"b":2}', '"13"']);
  const second = await app!.inject({ url: '/v1/x', headers: { 'if-none-match': '"13"' } });
  expect([second.statusCode, second.body, second.headers['etag']]).toEqual([304, '', '"13"']);
});

test("a module's error map holds for every route, and the app's own is asked first", async () => {
  class Fails extends Controller {
    range = route.get('/range', { permission: allowAny }, () => {
      throw new RangeError('too far');
    });
    type = route.get('/type', { permission: allowAny }, () => {
      throw new TypeError('not that');
    });
  }
  const errorMap = errors().on(RangeError, { status: 409, code: 'of_module' }).on(TypeError, { status: 409, code: 'of_module' });
  const served = await serve(Fails, {
    errors: errors().on(TypeError, { status: 410, code: 'of_app' }),
    modules: [{ name: 'mapping', errorMap }],
  });
  const answer = async (url: string) => (await served.inject(url)).json<{ status: number; code: string }>();
  expect(await answer('/v1/x/range')).toMatchObject({ status: 409, code: 'of_module' });
  expect(await answer('/v1/x/type')).toMatchObject({ status: 410, code: 'of_app' });
});

describe('modules and controllers look at the app before it serves', () => {
  class Thing extends Controller {
    one = route.get('/', { response: Any, permission: allowAny }, () => ({}));
    faults() {
      return [{ id: 'E012', message: 'Thing: is wrong.' }];
    }
  }

  test('a fault of a controller stops the start, beside all others', () => {
    const start = () =>
      createApp({
        database: 'sqlite::memory:',
        mount: { '/v1': { '/x': Thing } },
        log: { level: 'silent' },
        modules: [{ name: 'strict', onRoute: ({ path }) => void (path === '/v1/x' && refuse()) }],
      });
    const refuse = () => {
      throw new Error('not this one');
    };
    expect(start).toThrow(/E012  Thing: is wrong\./);
    expect(start).toThrow(/E006  Thing\.one: the module "strict" refuses it: not this one/);
  });
});
