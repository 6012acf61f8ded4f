import { describe, expect, test } from 'vitest';
import { jsonSchema } from '../http/declare/json-schema.ts';
import { z } from 'zod';
import type { Authenticator } from '../auth/request/authenticator.ts';
import type { UserDirectory } from '../auth/people/user-directory.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { errors } from '../errors/error-map.ts';
import { Controller, type ControllerClass } from '../http/compile/controller.ts';
import type { Fault } from '../options/fault.ts';
import { route, type RouteOptions } from '../http/declare/route.ts';
import { securityHeaders } from '../middleware/security-headers.ts';
import { all, allowAny, denyAll, hasRule, hasScopes, isAuthenticated, isStaff } from '../permissions/index.ts';
import { clientThrottle } from '../throttle/index.ts';
import { checkDescriptions } from './check/checks.ts';
import { createApp } from './assemble/create-app.ts';
import type { Module } from './declare/module.ts';
import type { AppOptions } from './declare/options.ts';
import { StartUpError } from './check/start-up-error.ts';

const Id = z.object({ id: z.string() });

function faultsOf(options: Partial<AppOptions>): readonly Fault[] {
  try {
    createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: {}, ...options });
  } catch (error) {
    if (error instanceof StartUpError) return error.faults;
    throw error;
  }
  return [];
}

const sentences = (options: Partial<AppOptions>) =>
  faultsOf(options).map(({ id, message, hint }) => `${id} ${message} ${hint ?? ''}`.trim());

function withRoute(path: string, options: object, prefix = '/things'): Partial<AppOptions> {
  class ThingController extends Controller {
    one = route.get(path, options as RouteOptions<undefined, undefined, undefined, undefined, undefined>, () => undefined);
  }
  return { mount: { '/v1': { [prefix]: ThingController } } };
}

const directory: UserDirectory = {
  table: {
    name: 'users',
    id: 'id',
    username: 'username',
    email: 'email',
    isActive: 'is_active',
    isStaff: 'is_staff',
    isSuperuser: 'is_superuser',
  },
  findById: async () => null,
  findByLogin: async () => null,
};

describe('unknown options', () => {
  test('of a route, with the one that was meant', () => {
    expect(sentences(withRoute('/', { permission: allowAny, throtles: [] }))).toEqual([
      'E001 ThingController.one: unknown option "throtles". Did you mean "throttles"?',
    ]);
  });

  test('inside the objects an app is made of', () => {
    const misspelt = {
      modules: [{ name: 'billing', model: [] }],
      middleware: [{ name: 'audit', onRespone: () => {} }],
      users: { ...directory, table: { ...directory.table, is_active: 'active' } },
      docs: { pth: '/reference' },
    };
    expect(sentences(misspelt as Partial<AppOptions>)).toEqual([
      'E001 createApp: unknown option "modules[0].model". Did you mean "models"?',
      'E001 createApp: unknown option "users.table.is_active". Did you mean "isActive"?',
      'E001 createApp: unknown option "middleware[0].onRespone". Did you mean "onResponse"?',
      'E001 createApp: unknown option "docs.pth". Did you mean "path"?',
    ]);
    expect(sentences(withRoute('/', { permission: allowAny, deprecated: { since: '2026-06-30', sunsett: '2027-01-01' } }))).toEqual([
      'E001 ThingController.one: unknown option "deprecated.sunsett". Did you mean "sunset"?',
    ]);
  });

  test('an instance of a class may have members of its own, but none that looks like a misspelt one', () => {
    class Counting {
      readonly name = 'counting';
      requests = 0;
      onFinish() {
        this.requests += 1;
      }
    }
    class Misspelt extends Counting {
      onRequets = () => {};
    }
    expect(sentences({ middleware: [new Counting()] })).toEqual([]);
    expect(sentences({ middleware: [new Misspelt()] })).toEqual([
      'E001 createApp: unknown option "middleware[0].onRequets". Did you mean "onRequest"?',
    ]);
  });

  test('of the app and of a version mount', () => {
    expect(sentences({ mounts: {} } as object)).toEqual(['E001 createApp: unknown option "mounts". Did you mean "mount"?']);
    expect(sentences({ mount: { '/v1': { controllers: {}, depricated: true } as never } })).toEqual([
      'E001 mount["/v1"]: unknown option "depricated". Did you mean "deprecated"?',
    ]);
  });

  test('of a controller: misspelt, or set as a bare class attribute', () => {
    class OrderController extends Controller {
      static readonly permissions = isStaff;
      tags = ['orders'];
      list = route.get('/', { permission: allowAny }, () => undefined);
    }
    expect(sentences({ mount: { '/v1': { '/orders': OrderController } } })).toEqual([
      'E002 OrderController: the option "tags" is a bare class attribute and would be ignored. Write "static readonly tags = …".',
      'E001 OrderController: unknown option "permissions". Did you mean "permission"?',
    ]);
  });

  test('of the settings', () => {
    expect(sentences({ settings: { eror: 1 } as object })[0]).toContain('settings.eror is not a setting');
  });
});

describe('collisions', () => {
  class A extends Controller {
    one = route.get('/:id', { params: Id, permission: allowAny }, () => undefined);
  }
  class B extends Controller {
    other = route.get('/:name', { params: z.object({ name: z.string() }), permission: allowAny }, () => undefined);
  }

  test('of paths, whatever their parameters are called, across controllers and mounts', () => {
    expect(sentences({ mount: { '/v1': { '/things': A }, '/v1/things': { '/': B } } })).toEqual([
      'E003 A.one and B.other both answer GET /v1/things/:name. Mount one of them elsewhere or change its path.',
    ]);
  });

  test('of operation ids', () => {
    class Other extends Controller {
      one = route.get('/', { permission: allowAny, operationId: 'a_one' }, () => undefined);
    }
    expect(sentences({ mount: { '/v1': { '/a': A, '/b': Other } } })).toEqual([
      'E003 A.one and Other.one have the same operation id "a_one". Rename a class or field, or set operationId.',
    ]);
  });

  test('are none when one controller serves two versions: the first keeps the plain ids', () => {
    const app = createApp({
      database: 'sqlite::memory:',
      log: { level: 'silent' },
      mount: { '/v1': { '/things': A }, '/v2': { '/things': A } },
    });
    expect(app.routes.filter(({ hidden }) => !hidden).map(({ operationId, path }) => [operationId, path])).toEqual([
      ['a_one', '/v1/things/:id'],
      ['a_one_v2', '/v2/things/:id'],
    ]);
  });
});

describe('path and params', () => {
  test.each([
    [
      '/:id',
      { permission: allowAny, params: jsonSchema({ type: 'object', properties: {} }) },
      'E004 ThingController.one: the path /v1/things/:id has ":id", the params schema does not. Declare it: params: z.object({ id: … }).',
    ],
    ['/:idd', { permission: allowAny, params: Id }, 'the params schema does not. Did you mean "id"?'],
    [
      '/',
      { permission: allowAny, params: Id },
      'the params schema has "id", the path /v1/things does not. Add ":id" to the path or remove it from params.',
    ],
    ['no-slash', { permission: allowAny }, 'is not a path'],
    ['/a//b', { permission: allowAny }, 'is not a path'],
  ])('%s with %j', (path, options, sentence) => {
    expect(sentences(withRoute(path, options)).join('\n')).toContain(sentence);
  });
});

describe('who may call', () => {
  const key: Authenticator = { name: 'api_key', securityScheme: {}, authenticate: () => null };
  test.each([
    [{}, 'E005 ThingController.one: has no permission. Set a permission; for a public route, permission: allowAny.'],
    [{ permission: hasScopes }, 'E005 ThingController.one: "permission" is not a Permission. Call the factory'],
    [
      { permission: isAuthenticated, scope: 'things:read' },
      'declares the scope "things:read" but its permission never checks it. Add hasScopes() to the permission.',
    ],
    [{ permission: all(isAuthenticated, hasScopes()), scope: 'things' }, 'is not of the form <resource>:<action>'],
    [{ permission: hasScopes(), scope: 'things:*' }, 'is not of the form <resource>:<action>'],
    [{ permission: hasRule('aprove') }, 'hasRule("aprove") names a rule the app does not have. Did you mean "approve"?'],
    [{ permission: allowAny, auth: ['api_keys'] }, 'no authenticator is named "api_keys". Did you mean "api_key"?'],
  ])('%j', (options, sentence) => {
    const given = { ...withRoute('/', options), authenticators: [key], rules: { approve: () => true as const } };
    expect(sentences(given).join('\n')).toContain(sentence);
  });

  test('the scope may be checked by the controller or the version', () => {
    class ThingController extends Controller {
      static override readonly permission = hasScopes();
      one = route.get('/', { permission: allowAny, scope: 'things:read' }, () => undefined);
    }
    expect(sentences({ mount: { '/v1': { '/things': ThingController } } })).toEqual([]);
    expect(
      sentences({
        mount: {
          '/v1': {
            controllers: withRoute('/', { permission: allowAny, scope: 'things:read' }).mount?.['/v1'] as never,
            permission: hasScopes(),
          },
        },
      }),
    ).toEqual([]);
  });

  test('permissions of operation, controller and version add up', () => {
    class ThingController extends Controller {
      static override readonly permission = isStaff;
      one = route.get('/', { permission: allowAny }, () => undefined);
    }
    const app = createApp({
      database: 'sqlite::memory:',
      log: { level: 'silent' },
      mount: { '/v1': { controllers: { '/things': ThingController }, permission: denyAll } },
    });
    expect(app.routes[0]?.permission.name).toBe('isStaff & denyAll & allowAny');
  });

  test('two authenticators of one name', () => {
    expect(sentences({ authenticators: [key, key] })).toEqual([
      'E005 Two authenticators are named "api_key". Routes and the OpenAPI document refer to them by name: rename one.',
    ]);
  });
});

describe('modules', () => {
  const named = (name: string, requires: string[] = []): Module => ({ name, requires });

  test('that are required must be installed', () => {
    expect(sentences({ modules: [named('webhooks', ['acounts', 'redis']), named('accounts')] })).toEqual([
      'E006 The module "webhooks" requires "acounts", which is not installed. Did you mean "accounts"?',
      'E006 The module "webhooks" requires "redis", which is not installed. Add redis() to modules.',
    ]);
  });

  test('may not require each other, nor appear twice, nor both provide users', () => {
    expect(sentences({ modules: [named('a', ['b']), named('b', ['a'])] })).toEqual([
      'E006 Modules depend on each other in a cycle: a → b → a. Remove one of these names from requires or after.',
    ]);
    expect(sentences({ modules: [named('a'), named('a')] })[0]).toContain('Two modules are named "a"');
    const users = { ...directory };
    expect(
      sentences({
        modules: [
          { name: 'a', users },
          { name: 'b', users },
        ],
      }),
    ).toEqual(['E006 a and b both provide users. Choose one: createApp({ users }).']);
  });

  test('start in the order of their needs', () => {
    const app = createApp({
      database: 'sqlite::memory:',
      log: { level: 'silent' },
      mount: {},
      modules: [named('c', ['a']), named('b'), named('a')],
    });
    expect(app.modules.map(({ name }) => name)).toEqual(['a', 'c', 'b']);
  });

  test('check the app after setup: errors stop it, warnings do not', async () => {
    const checking = (id: string): Module => ({
      name: 'm',
      checks: [{ name: 'c', run: () => [{ id, message: 'Something.', hint: 'Do it.' }] }],
    });
    const bad = createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: {}, modules: [checking('E100')] });
    await expect(bad.ready()).rejects.toThrow('E100  Something. Do it.');
    const fine = createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: {}, modules: [checking('W100')] });
    await fine.ready();
    await fine.close();
  });
});

describe('invalid values', () => {
  test.each([
    [{ status: 99 }, 'E011 ThingController.one: status is 99; use an integer from 200 to 599.'],
    [{ timeoutMs: 2 ** 31 }, 'timeoutMs is 2147483648; use a number of milliseconds from 0 to 2147483647.'],
    [{ timeoutMs: Number.NaN }, 'timeoutMs is NaN; use a number of milliseconds'],
    [{ bodyBytesMax: 0 }, 'bodyBytesMax is 0; use an integer of 1 or more.'],
    [
      { throttles: [clientThrottle] },
      'throttles[0] is the function clientThrottle; use a throttle, such as clientThrottle("10/min"). Call it: clientThrottle(…).',
    ],
    [{ throttles: clientThrottle('1/s') }, 'throttles is an object of another kind; use a list: [ … ].'],
    [{ auth: 'session' }, 'auth is "session"; use a list: [ … ].'],
    [{ raises: [409] }, 'raises[0] is 409; use an error definition or an error class.'],
    [{ errors: [] }, 'errors is a list; use an error map: errors().on(…).'],
    [{ csrf: true }, 'csrf is true; use false, or leave it out.'],
    [{ deprecated: 'soon' }, 'deprecated is "soon"; use true or { since: "2026-06-30" }.'],
  ])('of a route: %o', (options, sentence) => {
    expect(sentences(withRoute('/', { permission: allowAny, ...options })).join('\n')).toContain(sentence);
  });

  test('of a controller and of a version', () => {
    class ThingController extends Controller {
      static override readonly throttles = [clientThrottle as never];
      one = route.get('/', { permission: allowAny }, () => undefined);
    }
    expect(sentences({ mount: { '/v1': { '/things': ThingController } } })).toEqual([
      'E011 ThingController: throttles[0] is the function clientThrottle; use a throttle, such as clientThrottle("10/min"). Call it: clientThrottle(…).',
    ]);
    expect(sentences({ mount: { '/v1': { controllers: {}, middleware: [securityHeaders as never] } } })).toEqual([
      'E011 mount["/v1"]: middleware[0] is the function securityHeaders; use middleware, such as securityHeaders(). Call it: securityHeaders(…).',
    ]);
  });

  test('of the app: a factory that was not called would be there and do nothing', () => {
    const accounts = () => ({ name: 'accounts' });
    const options: Record<string, unknown> = {
      modules: [accounts],
      middleware: [securityHeaders, undefined],
      throttles: [clientThrottle],
      authenticators: [{ name: 'key', securityScheme: {} }],
      timeoutMs: -1,
      jsonDepthMax: 0,
      tenant: 'acme',
      clock: Date,
    };
    expect(sentences(options as Partial<AppOptions>)).toEqual([
      'E011 createApp: modules[0] is the function accounts; use a module, such as accounts(). Call it: accounts(…).',
      'E011 createApp: authenticators[0] is an object of another kind; use an authenticator, such as new ApiKeyAuth().',
      'E011 createApp: throttles[0] is the function clientThrottle; use a throttle, such as clientThrottle("10/min"). Call it: clientThrottle(…).',
      'E011 createApp: middleware[0] is the function securityHeaders; use middleware, such as securityHeaders(). Call it: securityHeaders(…).',
      'E011 createApp: middleware[1] is missing; use middleware, such as securityHeaders().',
      'E011 createApp: tenant is "acme"; use a function.',
      'E011 createApp: clock is the function Date; use a clock: { now: () => Date }. Call it: Date(…).',
      'E011 createApp: jsonDepthMax is 0; use an integer of 1 or more.',
      'E011 createApp: timeoutMs is -1; use a number of milliseconds from 0 to 2147483647.',
    ]);
  });

  test('routes without a handler or options', () => {
    class BareController extends Controller {
      // @ts-expect-error -- the handler is missing
      one = route.get('/one', { permission: allowAny });
      // @ts-expect-error -- the options are missing
      two = route.get('/two', undefined, () => undefined);
    }
    expect(sentences({ mount: { '/v1': { '/bare': BareController } } })).toEqual([
      'E008 BareController.one: has no handler. It is the last argument: route.get(path, options, handler).',
      'E008 BareController.two: has no options. Say at least who may: route.get(path, { permission: … }, handler).',
    ]);
  });

  test('mounts that would mount nothing', () => {
    class ThingController extends Controller {
      one = route.get('/', { permission: allowAny }, () => undefined);
    }
    const mounted = (given: unknown) => sentences({ mount: { '/v1': given as never } });
    const hint = "mount: { '/v1': { '/orders': OrderController } }.";
    expect(mounted(ThingController)).toEqual([`E008 mount["/v1"]: takes controllers by prefix. ${hint}`]);
    expect(mounted(new ThingController())).toEqual([`E008 mount["/v1"]: takes controllers by prefix. ${hint}`]);
    expect(mounted(null)).toEqual([`E008 mount["/v1"]: takes controllers by prefix. ${hint}`]);
    expect(mounted({ things: ThingController })).toEqual([`E004 mount["/v1"]: the prefix "things" does not start with "/". ${hint}`]);
    expect(mounted({ deprecated: true })).toEqual([
      'E008 mount["/v1"]: has no controllers. { controllers: { \'/orders\': OrderController } }.',
    ]);
  });
});

describe('what cannot work', () => {
  test('schemas', () => {
    expect(sentences(withRoute('/', { permission: allowAny, response: z.date() }))[0]).toMatch(
      /^E008 .* cannot be written as JSON Schema: .*Use types JSON can carry/,
    );
    expect(sentences(withRoute('/', { permission: allowAny, query: { limit: 1 } }))[0]).toContain('"query" is not a Standard Schema');
    expect(sentences(withRoute('/', { permission: allowAny, body: Id }))[0]).toContain('GET has no request body. Use route.query');
    expect(sentences(withRoute('/', { permission: allowAny, response: Id, status: 204 }))[0]).toContain('status 204 has no body');
  });

  test('controllers', () => {
    class Needy extends Controller {
      constructor(options: { size: number }) {
        super();
        options.size.toFixed();
      }
    }
    class Empty extends Controller {}
    const mounted = sentences({
      mount: { '/v1': { '/a': Needy as unknown as ControllerClass, '/b': Empty, '/c': 'x' as unknown as ControllerClass } },
    });
    expect(mounted[0]).toMatch(
      /^E008 mount\["\/v1"\]\["\/a"\]: the controller cannot be created: .* Mount an instance if it takes arguments\.$/,
    );
    expect(mounted[2]).toContain('E002 Empty: has no routes.');
    expect(mounted[1]).toContain('E008 mount["/v1"]["/c"]: not a controller.');
  });

  test('raised errors without a mapping', () => {
    class OutOfStock extends Error {}
    expect(sentences(withRoute('/', { permission: allowAny, raises: [OutOfStock] }))[0]).toContain(
      'raises OutOfStock, which no error map covers',
    );
    const mapped = {
      ...withRoute('/', { permission: allowAny, raises: [OutOfStock, coreErrors.conflict] }),
      errors: errors().on(OutOfStock, { status: 409, code: 'out_of_stock' }),
    };
    const app = createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: {}, ...mapped });
    expect(app.routes[0]?.raises.map(({ status, code }) => `${status} ${code}`)).toEqual(['409 out_of_stock', '409 conflict']);
  });

  test('throttles, settings, proxies, databases', () => {
    expect(sentences(withRoute('/', { permission: allowAny, throttles: [clientThrottle('1/s'), clientThrottle('2/s')] }))[0]).toMatch(
      /^E009 ThingController\.one: Two throttles/,
    );
    expect(sentences({ trustedProxies: ['localhost'] })[0]).toContain('neither an IP address');
    expect(sentences({ trustedProxies: 'none' as never, services: 'mailer' as never })).toEqual([
      'E011 createApp: services is "mailer"; use a list: [ … ].',
      'E011 createApp: trustedProxies is "none"; use a list: [ … ].',
    ]);
    expect(
      sentences({ settings: { errorFormat: 'xml' as never, throttleRates: { login: '5/fortnight' }, warnBlockingMs: -1 } }),
    ).toHaveLength(3);
    expect(sentences({ database: { reports: 'sqlite::memory:' } })[0]).toContain('None of the databases is called "default"');
  });
});

test('a public write without a throttle is a warning, not an error', async () => {
  const lines: string[] = [];
  class OpenController extends Controller {
    create = route.post('/', { permission: allowAny }, () => undefined);
    read = route.query('/', { permission: allowAny }, () => undefined);
    guarded = route.post('/guarded', { permission: isAuthenticated }, () => undefined);
  }
  const app = createApp({
    database: 'sqlite::memory:',
    mount: { '/v1': { '/open': OpenController } },
    log: { level: 'warn', hooks: { logMethod: (args) => void lines.push(String(args[1])) } },
  });
  // A command that is not about them does not begin with them.
  await app.ready();
  expect(lines).toEqual([]);
  await app.start();
  await app.close();
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain('W003 OpenController.create: anyone may POST /v1/open');
});

test('every fault is reported at once, and every id is explained', () => {
  class OutOfStock extends Error {}
  class BadController extends Controller {
    tags = [];
    one = route.get(
      '/:id',
      { permission: isAuthenticated, params: jsonSchema({ type: 'object' }), scope: 'a:b', throttle: [], raises: [OutOfStock] } as never,
      () => undefined,
    );
  }
  const faults = faultsOf({
    mount: { '/v1': { '/a': BadController } },
    settings: { logLevel: 'loud' },
    modules: [{ name: 'm', requires: ['n'] }],
  });
  expect(faults.map(({ id }) => id).sort()).toEqual(['E001', 'E002', 'E004', 'E005', 'E006', 'E010', 'E011']);
  expect(faults.every(({ id }) => id in checkDescriptions)).toBe(true);
  expect(new StartUpError(faults).message).toMatch(/^The app cannot start, 7 faults:\n/);
});

test('routes with static paths win over parameters, whatever the order of the fields', async () => {
  class OrderController extends Controller {
    one = route.get('/:id', { params: Id, response: z.object({ from: z.string() }), permission: allowAny }, () => ({ from: 'one' }));
    stats = route.get('/stats', { response: z.object({ from: z.string() }), permission: allowAny }, () => ({ from: 'stats' }));
  }
  const app = createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: { '/v1': { '/orders': OrderController } } });
  expect((await app.inject('/v1/orders/stats')).json()).toEqual({ from: 'stats' });
  expect((await app.inject('/v1/orders/7')).json()).toEqual({ from: 'one' });
  await app.close();
});
