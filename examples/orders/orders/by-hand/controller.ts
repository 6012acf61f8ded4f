import { all, Controller, coreErrors, hasScopes, isStaff, page, route } from 'kit';
import { accepted, acceptsJob, startJob } from 'kit/contrib/jobs';
import { requireUpload } from 'kit/contrib/uploads';
import { z } from 'zod';
import { settings } from '../../settings.ts';
import { closeOrder } from './close.ts';
import { orderErrors } from '../errors.ts';
import { exportOrders } from '../export-orders.ts';
import { orders } from '../models.ts';
import { placeOrder } from './place.ts';
import { attachInvoice, orderOf, ordersOf } from './store.ts';

const NewOrder = z.object({ item: z.string().min(1).max(120), quantity: z.int().min(1) });
const ById = z.object({ id: z.uuid() });
const Invoice = z.object({ upload_id: z.uuid() });
const ListQuery = z.object({ page: z.int().min(1).default(1), page_size: z.int().min(1).max(100).default(50) });

/** People come with a session, machines with a key that has the scope. */
const permission = hasScopes({ allowUnscoped: true });

/** The API of `../controller.ts` without `kit/crud`: every rule is code of its own. Both pass the same tests. */
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
    async ({ body, db, user, services }) => placeOrder(db, user.id, body, (await services.get(settings)).current),
  );

  export = route.post(
    '/export',
    { ...acceptsJob, permission: all(permission, isStaff), scope: 'orders:read', summary: 'Make a CSV file of all orders, by a job' },
    (context) => context.db.transaction(async (tx) => accepted(context, await startJob(tx, exportOrders, {}, { owner: context.user.id }))),
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
      summary: 'Pay the order',
    },
    ({ params, db, user, clock }) => closeOrder(db, user.id, params.id, 'paid', clock.now()),
  );

  cancel = route.post(
    '/:id/cancel',
    {
      params: ById,
      response: orders.output,
      permission,
      scope: 'orders:write',
      raises: [coreErrors.not_found, orderErrors.invalid_transition],
      summary: 'Cancel the order',
    },
    ({ params, db, user, clock }) => closeOrder(db, user.id, params.id, 'cancelled', clock.now()),
  );

  invoice = route.put(
    '/:id/invoice',
    {
      params: ById,
      body: Invoice,
      response: orders.output,
      permission,
      scope: 'orders:write',
      raises: [coreErrors.not_found],
      summary: 'Attach an invoice you uploaded to one of your orders',
    },
    async ({ params, body, db, user, caller, clock }) => {
      const { tenant } = await caller();
      await requireUpload(db, { owner: user.id, tenantKey: tenant ?? '' }, body.upload_id, ['body', 'upload_id']);
      const order = await attachInvoice(db, user.id, params.id, body.upload_id, clock.now());
      if (order === undefined) throw coreErrors.not_found();
      return order;
    },
  );
}
