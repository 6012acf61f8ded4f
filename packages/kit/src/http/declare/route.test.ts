import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import type { Principal, User } from '../../auth/people/principal.ts';
import type { Database } from '../../db/engine/db.ts';
import { allowAny, hasScopes, isAuthenticated } from '../../permissions/built-ins.ts';
import { all, any } from '../../permissions/permission.ts';
import { page } from './page.ts';
import { raw } from './raw.ts';
import { route } from './route.ts';
import { routeAround } from './route-around.ts';

const Order = z.object({ id: z.string(), total: z.number() });

describe('types flow from schemas to the handler', () => {
  test('params, query, headers and body arrive as the schemas say', () => {
    route.put(
      '/:id',
      {
        params: z.object({ id: z.uuid() }),
        query: z.object({ limit: z.int().default(10) }),
        headers: z.object({ 'x-trace': z.string().optional() }),
        body: z.object({ total: z.number(), at: z.string().transform((text) => new Date(text)) }),
        permission: allowAny,
      },
      ({ params, query, headers, body, db, signal }) => {
        expectTypeOf(params).toEqualTypeOf<{ id: string }>();
        expectTypeOf(query).toEqualTypeOf<{ limit: number }>();
        expectTypeOf(headers).toEqualTypeOf<{ 'x-trace'?: string | undefined }>();
        expectTypeOf(body).toEqualTypeOf<{ total: number; at: Date }>();
        expectTypeOf(db).toEqualTypeOf<Database>();
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      },
    );
  });

  test('what is not declared is not there', () => {
    route.post('/', { permission: allowAny }, ({ body, query, params }) => {
      expectTypeOf(body).toEqualTypeOf<undefined>();
      // @ts-expect-error -- no query schema, so no query members
      void query.limit;
      // @ts-expect-error -- no params schema
      void params.id;
    });
  });

  test('the handler must return what the response schema says', () => {
    route.get('/', { response: Order, permission: allowAny }, () => ({ id: 'x', total: 1 }));
    route.get('/', { response: Order, permission: allowAny }, async () => ({ id: 'x', total: 1 }));
    // @ts-expect-error -- total is a number
    route.get('/', { response: Order, permission: allowAny }, () => ({ id: 'x', total: '1' }));
    // @ts-expect-error -- total is missing
    route.get('/', { response: Order, permission: allowAny }, async () => ({ id: 'x' }));
    // @ts-expect-error -- without a response schema nothing may be returned
    route.get('/', { permission: allowAny }, () => ({ id: 'x' }));
    route.get('/', { permission: allowAny }, () => undefined);
    route.delete('/', { permission: allowAny }, async () => {});
    route.get('/', { response: page(Order), permission: allowAny }, () => ({ items: [{ id: 'x', total: 1 }], count: 1 }));
    // @ts-expect-error -- a page has items
    route.get('/', { response: page(Order), permission: allowAny }, () => ({ count: 1 }));
    route.get('/', { response: raw('text/csv'), permission: allowAny }, () => 'a,b');
  });

  test('a stream yields events whose data is the response schema', () => {
    route.stream('/', { response: Order, permission: allowAny }, async function* () {
      yield { data: { id: 'x', total: 1 }, id: '1' };
    });
    // @ts-expect-error -- the data is not an order
    route.stream('/', { response: Order, permission: allowAny }, async function* () {
      yield { data: 'x' };
    });
  });
});

describe('closed by default', () => {
  test('a route without a permission does not compile', () => {
    // @ts-expect-error -- permission is required
    route.get('/', {}, () => undefined);
    // @ts-expect-error -- permission is required
    route.post('/', { body: Order, response: Order }, ({ body }) => body);
    // @ts-expect-error -- the factory itself is not a permission
    route.get('/', { permission: hasScopes }, () => undefined);
  });

  test('a misspelt option does not compile', () => {
    // @ts-expect-error -- throttle
    route.get('/', { permission: allowAny, throttle: [] }, () => undefined);
    // @ts-expect-error -- GET has no body
    route.get('/', { permission: allowAny, body: Order }, () => undefined);
  });

  test('user is null exactly where anonymous callers get through', () => {
    route.get('/', { permission: allowAny }, ({ user, principal }) => {
      expectTypeOf(user).toEqualTypeOf<User | null>();
      expectTypeOf(principal).toEqualTypeOf<Principal | null>();
    });
    route.get('/', { permission: isAuthenticated }, ({ user, principal }) => {
      expectTypeOf(user).toEqualTypeOf<User>();
      expectTypeOf(principal).toEqualTypeOf<Principal>();
    });
    route.post('/', { body: Order, permission: all(allowAny, hasScopes()) }, ({ user }) => void expectTypeOf(user).toEqualTypeOf<User>());
    route.post('/', { permission: any(allowAny, hasScopes()) }, ({ user }) => void expectTypeOf(user).toEqualTypeOf<User | null>());
  });
});

test('a wrapped route keeps what it inherits, adds the permission, takes over other facts and runs around the handler', async () => {
  const inherited = route.get('/', { response: Order, permission: allowAny, summary: 'One' }, () => ({ id: 'x', total: 1 }));
  const wrapped = routeAround(inherited, { permission: isAuthenticated, tags: ['mine'] }, async (_, next) => ({
    ...((await next()) as object),
    total: 2,
  }));
  expect(wrapped.options).toMatchObject({ response: Order, summary: 'One', tags: ['mine'] });
  expect(wrapped.options.permission.parts).toEqual([allowAny, isAuthenticated]);
  expect(await wrapped.handler({} as never)).toEqual({ id: 'x', total: 2 });
  expect(inherited.options.tags).toBeUndefined();
});
