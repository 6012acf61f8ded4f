import { Controller, coreErrors, hasScopes, page, route } from 'kit';
import { publish } from 'kit/contrib/webhooks';
import { insert, type Db } from 'kit/db';
import { z } from 'zod';
import { settings } from '../settings.ts';
import { orderErrors } from './errors.ts';
import { orders, type Order } from './models.ts';
import { totalOf } from './price.ts';
import { closeOpenOrder, orderOf, ordersOf } from './store.ts';

const NewOrder = z.object({ item: z.string().min(1).max(120), quantity: z.int().min(1) });
const ById = z.object({ id: z.uuid() });
const ListQuery = z.object({ page: z.int().min(1).default(1), page_size: z.int().min(1).max(100).default(50) });

/** People come with a session, machines with a key that has the scope. */
const permission = hasScopes({ allowUnscoped: true });

export class OrderController extends Controller {
  static override readonly tags = ['orders'];

  list = route.get(
    '/',
    { query: ListQuery, response: page(orders.output), permission, scope: 'orders:read', summary: 'Your orders, newest first' },
    ({ query, db, user }) => ordersOf(db, user.id, query.page, query.page_size),
  );

  create = route.post(
    '/',
    {
      body: NewOrder,
      response: orders.output,
      status: 201,
      permission,
      scope: 'orders:write',
      raises: [orderErrors.quantity_too_large],
      summary: 'Place an order',
    },
    async ({ body, db, user, services }) => {
      const { currency, unit_price, quantity_max } = (await services.get(settings)).current;
      if (body.quantity > quantity_max) throw orderErrors.quantity_too_large({ extensions: { quantity_max } });
      return db.transaction(async (tx) => {
        const order = await insert(tx, orders, { ...body, owner_id: user.id, currency, total: totalOf(unit_price, body.quantity) });
        await announce(tx, 'order.created', order);
        return order;
      });
    },
  );

  retrieve = route.get(
    '/:id',
    {
      params: ById,
      response: orders.output,
      permission,
      scope: 'orders:read',
      raises: [coreErrors.not_found],
      summary: 'One of your orders',
    },
    async ({ params, db, user }) => {
      const order = await orderOf(db, user.id, params.id);
      if (order === undefined) throw coreErrors.not_found();
      return order;
    },
  );

  pay = route.post(
    '/:id/pay',
    {
      params: ById,
      response: orders.output,
      permission,
      scope: 'orders:write',
      raises: [coreErrors.not_found, orderErrors.invalid_transition],
      summary: 'Pay an open order',
    },
    ({ params, db, user, clock }) => close(db, user.id, params.id, 'paid', clock.now()),
  );

  cancel = route.post(
    '/:id/cancel',
    {
      params: ById,
      response: orders.output,
      permission,
      scope: 'orders:write',
      raises: [coreErrors.not_found, orderErrors.invalid_transition],
      summary: 'Cancel an open order',
    },
    ({ params, db, user, clock }) => close(db, user.id, params.id, 'cancelled', clock.now()),
  );
}

/** The event exists exactly when the change does: it is a row of the same transaction. */
async function announce(tx: Db, type: string, { id, owner_id, item, quantity, total, currency, status }: Order): Promise<void> {
  await publish(tx, type, { id, item, quantity, total, currency, status }, { owner: owner_id, orderingKey: id });
}

async function close(db: Db, ownerId: string, id: string, status: 'paid' | 'cancelled', now: Date): Promise<Order> {
  return db.transaction(async (tx) => {
    const closed = await closeOpenOrder(tx, ownerId, id, status, now);
    if (closed !== undefined) {
      await announce(tx, `order.${status}`, closed);
      return closed;
    }
    const order = await orderOf(tx, ownerId, id);
    if (order === undefined) throw coreErrors.not_found();
    throw orderErrors.invalid_transition({ detail: `The order is ${order.status}; only an open order can be ${status}.` });
  });
}
