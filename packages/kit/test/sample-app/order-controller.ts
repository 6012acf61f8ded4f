import { setTimeout as wait } from 'node:timers/promises';
import * as z from 'zod';
import { coreErrors } from '../../src/errors/core-errors.ts';
import { Controller } from '../../src/http/compile/controller.ts';
import { page } from '../../src/http/declare/page.ts';
import { raw } from '../../src/http/declare/raw.ts';
import { route } from '../../src/http/declare/route.ts';
import { allowAny, hasScopes, isAuthenticated, isOwner } from '../../src/permissions/built-ins.ts';
import { findOrder, insertOrder, listOrders } from './order-store.ts';
import { Bulk, ListQuery, Order, OrderInput, OrderKey, OrderPatch, SearchBody, Tree } from './schemas.ts';

/** A route of every kind: methods, schemas, permissions, streams, raw answers, several writes in one transaction. */
export class OrderController extends Controller {
  static override readonly tags = ['orders'];

  list = route.get(
    '/',
    { query: ListQuery, response: page(Order), permission: allowAny, summary: 'List orders' },
    async ({ query, db }) => ({
      items: await listOrders(db, { search: query.search, limit: query.page_size, offset: (query.page - 1) * query.page_size }),
      count: null,
    }),
  );

  search = route.query(
    '/',
    { body: SearchBody, response: z.array(Order), permission: allowAny, summary: 'Search orders' },
    ({ body, db }) => listOrders(db, { search: body.text, limit: body.limit, offset: 0 }),
  );

  create = route.post(
    '/',
    {
      body: OrderInput,
      response: Order,
      status: 201,
      permission: isAuthenticated,
      raises: [coreErrors.conflict],
      summary: 'Create an order',
      bodyBytesMax: 64 * 1024,
    },
    ({ body, db, user }) => db.transaction((tx) => insertOrder(tx, user.id, body)),
  );

  bulk = route.post(
    '/bulk',
    { body: Bulk, response: z.array(Order), status: 201, permission: hasScopes(), scope: 'orders:write', raises: [coreErrors.conflict] },
    ({ body, db, user }) =>
      db.transaction(async (tx) => {
        const rows = [];
        for (const values of body.orders) rows.push(await insertOrder(tx, user.id, values));
        return rows;
      }),
  );

  retrieve = route.get('/:id', { params: OrderKey, response: Order, permission: allowAny }, ({ params, db }) => findOrder(db, params.id));

  replace = route.put(
    '/:id',
    { params: OrderKey, body: OrderInput, response: Order, permission: isAuthenticated.and(isOwner()) },
    async ({ params, body, db, authorize }) => {
      await authorize(await findOrder(db, params.id));
      await db.query('update orders set title = $1, priority = $2, document = $3 where id = $4', [
        body.title,
        body.priority,
        JSON.stringify(body),
        params.id,
      ]);
      return findOrder(db, params.id);
    },
  );

  change = route.patch(
    '/:id',
    { params: OrderKey, body: OrderPatch, response: Order, permission: isAuthenticated.and(isOwner()) },
    async ({ params, body, db, authorize }) => {
      const order = await findOrder(db, params.id);
      await authorize(order);
      await db.query('update orders set title = $1, priority = $2 where id = $3', [
        body.title ?? order.title,
        body.priority ?? order.priority,
        params.id,
      ]);
      return findOrder(db, params.id);
    },
  );

  remove = route.delete('/:id', { params: OrderKey, permission: isAuthenticated.and(isOwner()) }, async ({ params, db, authorize }) => {
    await authorize(await findOrder(db, params.id));
    await db.query('delete from orders where id = $1', [params.id]);
  });

  export = route.get(
    '/export.csv',
    {
      query: z.strictObject({
        columns: z
          .array(z.enum(['id', 'title']))
          .min(1)
          .optional(),
      }),
      response: raw('text/csv; charset=utf-8'),
      permission: allowAny,
    },
    () => 'id,title\r\n',
  );

  feed = route.stream(
    '/feed',
    { query: z.strictObject({ count: z.int().min(0).max(3).default(1) }), response: z.strictObject({ n: z.int() }), permission: allowAny },
    async function* ({ query }) {
      for (let n = 0; n < query.count; n += 1) {
        await wait(0);
        yield { data: { n }, id: String(n) };
      }
    },
  );

  tree = route.put('/tree', { body: Tree, response: z.strictObject({ depth: z.int() }), permission: allowAny }, ({ body }) => {
    const depth = (node: Tree): number => 1 + Math.max(0, ...(node.children ?? []).map(depth));
    return { depth: depth(body) };
  });

  number = route.get(
    '/number/:value',
    {
      params: z.strictObject({ value: z.int().min(-1000).max(1000) }),
      headers: z.strictObject({ 'x-factor': z.int().min(1).max(9).optional() }),
      response: z.strictObject({ value: z.int() }),
      permission: allowAny,
    },
    ({ params, headers }) => ({
      value: params.value * (headers['x-factor'] ?? 1),
    }),
  );

  ping = route.post('/ping', { permission: allowAny }, () => undefined);
}
