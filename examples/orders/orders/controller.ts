import { all, hasScopes, isStaff, route } from 'kit';
import { sharing } from 'kit/contrib/grants';
import { accepted, acceptsJob, startJob } from 'kit/contrib/jobs';
import { CrudController } from 'kit/crud';
import { orderErrors } from './errors.ts';
import { exportOrders } from './export-orders.ts';
import { orderResource } from './resource.ts';

/** People come with a session, machines with a key that has the scope. */
const permission = hasScopes({ allowUnscoped: true });

class Orders extends CrudController(orderResource, {
  permission,
  scope: 'orders',
  filters: { status: ['eq', 'in'], total: ['gte', 'lte'], created_at: ['gte', 'lt'], item: ['contains'] },
  search: ['item'],
  ordering: { by: ['created_at', 'total'] },
  expand: ['invoice'],
  live: true,
  page: { default: 50, max: 100 },
  operations: {
    list: { summary: 'Your orders, newest first', tool: true },
    create: { summary: 'Place an order', tool: true, raises: [orderErrors.quantity_too_large] },
    retrieve: { summary: 'One of your orders', tool: true },
    partialUpdate: {
      summary: 'Change an open order, or attach an invoice you uploaded',
      tool: true,
      raises: [orderErrors.quantity_too_large, orderErrors.order_closed],
    },
    update: false,
    destroy: false,
  },
}) {}

/** With GET, PUT and DELETE of `/{id}/grants`: an order is shared by a user who holds `share`, with a colleague or a group. */
export class OrderController extends sharing(Orders) {
  static override readonly tags = ['orders'];

  exportAll = route.post(
    '/export',
    { ...acceptsJob, permission: all(permission, isStaff), scope: 'orders:read', summary: 'Make a CSV file of all orders, by a job' },
    (context) => context.db.transaction(async (tx) => accepted(context, await startJob(tx, exportOrders, {}, { owner: context.user.id }))),
  );
}
