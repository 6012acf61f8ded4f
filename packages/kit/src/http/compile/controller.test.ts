import { afterEach, describe, expect, test } from 'vitest';
import type { App } from '../../app/declare/module.ts';
import { createApp } from '../../app/assemble/create-app.ts';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import { errors } from '../../errors/error-map.ts';
import { allowAny, isAuthenticated, isStaff } from '../../permissions/built-ins.ts';
import { securityHeaders } from '../../middleware/security-headers.ts';
import { clientThrottle } from '../../throttle/throttles.ts';
import { Controller, inheritedOptions, type Mountable } from './controller.ts';
import { jsonSchema } from '../declare/json-schema.ts';
import type { Middleware } from '../exchange/middleware.ts';
import { route } from '../declare/route.ts';
import { routeAround } from '../declare/route-around.ts';

const Out = jsonSchema<{ ok: unknown }>({ type: 'object', properties: { ok: {} }, required: ['ok'] });

const byHeader: Authenticator = {
  name: 'header',
  securityScheme: { type: 'http', scheme: 'header' },
  authenticate: ({ headers }) => {
    const id = headers['x-user'];
    if (typeof id !== 'string') return null;
    const user = { id, username: id, email: null, is_active: true, is_staff: id === 'staff', is_superuser: false };
    return { user, scheme: 'header', scopes: null };
  },
};

let app: App | undefined;
afterEach(() => app?.close());

async function status(controller: Mountable, user?: string, url = '/v1/x'): Promise<number> {
  await app?.close();
  app = createApp({
    database: 'sqlite::memory:',
    authenticators: [byHeader],
    mount: { '/v1': { '/x': controller } },
    log: { level: 'silent' },
  });
  const headers = user === undefined ? {} : { 'x-user': user };
  return (await app.inject({ method: 'GET', url, headers })).statusCode;
}

class Base extends Controller {
  static override readonly permission = isStaff;
  list = route.get('/', { response: Out, permission: allowAny }, () => ({ ok: 1 }));
}

describe('statics add up along the class chain', () => {
  test("a subclass' permission adds to its base class', and cannot remove it", async () => {
    class Open extends Base {
      static override readonly permission = isAuthenticated;
    }
    class Opener extends Open {
      static override readonly permission = isAuthenticated;
    }
    for (const controller of [Base, Open, Opener]) {
      expect([controller.name, await status(controller, 'ann')]).toEqual([controller.name, 403]);
      expect([controller.name, await status(controller, 'staff')]).toEqual([controller.name, 200]);
      expect([controller.name, await status(controller)]).toEqual([controller.name, 401]);
    }
  });

  test('an instance, and a route the subclass assigns again, are guarded too', async () => {
    class Again extends Base {
      override list = route.get('/', { response: Out, permission: allowAny }, () => ({ ok: 2 }));
    }
    expect(await status(new Again(), 'ann')).toBe(403);
  });

  test('throttles of every class apply; error maps of the nearest class are asked first', () => {
    const [one, two] = [clientThrottle('1/min'), clientThrottle('2/min')];
    const [base, near] = [errors().on(RangeError, { status: 400, code: 'base' }), errors().on(RangeError, { status: 400, code: 'near' })];
    class First extends Controller {
      static override readonly throttles = [one];
      static override readonly errors = base;
    }
    class Second extends First {
      static override readonly throttles = [two];
      static override readonly errors = near;
    }
    expect(inheritedOptions(new Second())).toEqual({
      permissions: [],
      throttles: [one, two],
      errors: [near, base],
      middleware: [],
      metadata: {},
    });
  });

  test('middleware of every class runs on the routes of the controller, inside that of the version and of the app, base class first', async () => {
    const seen: string[] = [];
    const noting = (name: string): Middleware => ({
      name,
      handle: (_exchange, next) => {
        seen.push(name);
        return next();
      },
    });
    class First extends Controller {
      static override readonly middleware: readonly Middleware[] = [noting('first')];
      list = route.get('/', { response: Out, permission: allowAny }, () => ({ ok: 1 }));
    }
    class Second extends First {
      static override readonly middleware = [noting('second')];
    }
    class Beside extends Controller {
      list = route.get('/', { response: Out, permission: allowAny }, () => ({ ok: 1 }));
    }
    app = createApp({
      database: 'sqlite::memory:',
      middleware: [noting('app')],
      mount: { '/v1': { controllers: { '/x': Second, '/y': Beside }, middleware: [noting('version')] } },
      log: { level: 'silent' },
    });
    expect((await app.inject('/v1/x')).statusCode).toBe(200);
    expect(seen.splice(0)).toEqual(['app', 'version', 'first', 'second']);
    expect((await app.inject('/v1/y')).statusCode).toBe(200);
    expect(seen).toEqual(['app', 'version']);
  });

  test('middleware that a class cannot use, and middleware that is no static, stop the start', async () => {
    class Factory extends Base {
      static override readonly middleware = [securityHeaders] as never;
    }
    class Bare extends Base {
      readonly middleware = [securityHeaders()];
    }
    await expect(status(Factory)).rejects.toThrow('Factory: middleware[0] is the function securityHeaders');
    await expect(status(Bare)).rejects.toThrow('Bare: the option "middleware" is a bare class attribute');
  });
});

describe('wrap', () => {
  test('runs around the inherited handler and adds its permission', async () => {
    class Wrapped extends Controller {
      list = route.get('/', { response: Out, permission: isStaff }, () => ({ ok: 'inner' }));
    }
    class Open extends Wrapped {
      override list = this.wrap('list', { permission: allowAny, summary: 'Ours' }, async (_, next) => ({ ok: [await next()] }));
    }
    expect(await status(Open, 'ann')).toBe(403);
    expect(await status(Open, 'staff')).toBe(200);
    expect((await app?.inject({ url: '/v1/x', headers: { 'x-user': 'staff' } }))?.json()).toEqual({ ok: [{ ok: 'inner' }] });
    expect(app?.routes.find(({ field }) => field === 'list')?.summary).toBe('Ours');
  });

  test('with undefined facts keeps every inherited one', () => {
    const inherited = route.get('/', { permission: isStaff, scope: 'orders:read', auth: ['session'], timeoutMs: 5 }, () => undefined);
    const facts = { permission: undefined, scope: undefined, auth: undefined, throttles: undefined, timeoutMs: undefined };
    expect(routeAround(inherited, facts as object).options).toEqual(inherited.options);
  });

  test('of a name no base class has fails at start-up', async () => {
    class Wrong extends Base {
      other = this.wrap('lsit', {});
    }
    await expect(status(Wrong)).rejects.toThrow(/wrap\("lsit"\): no base class of Wrong has a route of this name/);
  });
});
