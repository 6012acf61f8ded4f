import { z } from 'zod';
import { modelResource } from '../../../kit/src/admin/index.ts';
import type { Module } from '../../../kit/src/app/index.ts';
import { CrudController, many, resource } from '../../../kit/src/crud/index.ts';
import { createTable, migration, model, softDelete, softDeleteUnique, t, timestamps, versioned } from '../../../kit/src/db/index.ts';
import { isStaff } from '../../../kit/src/permissions/index.ts';

const customerColumns = { id: t.uuidv7().pk(), name: t.text({ min: 1, max: 80 }), ...timestamps() };
const orderColumns = {
  id: t.uuidv7().pk(),
  reference: t.text({ min: 1, max: 20 }),
  quantity: t.int({ min: 1 }),
  status: t.enum(['open', 'paid', 'shipped']).dbDefault('open'),
  remark: t.text(200).nullable(),
  approval: t.enum(['asked', 'approved']).dbDefault('asked').readOnly(),
  ...versioned(),
  ...softDelete(),
  ...timestamps(),
};

const lineColumns = { id: t.uuidv7().pk(), sku: t.text(20), amount: t.int({ min: 1 }) };

export const customers = model('customers', customerColumns);
const lineIndexes = [{ columns: ['order_id'] }];
const indexes = [{ columns: ['customer_id'] }, softDeleteUnique('reference')];
export const orders = model('orders', { ...orderColumns, customer_id: t.ref(() => customers) }, { indexes });
export const orderLines = model('order_lines', { ...lineColumns, order_id: t.ref(() => orders) }, { indexes: lineIndexes });

export const customerResource = resource(customers, { unscoped: true, admin: { rows: true } });
const lineResource = resource(orderLines, { unscoped: true, admin: { rows: true } });
export const orderResource = resource(orders, {
  unscoped: true,
  version: 'version',
  relations: { lines: many(() => orderLines, 'order_id', { order: ['sku'] }) },
  computed: {
    size: {
      requires: ['quantity'],
      response: z.string(),
      value: ({ quantity }: { quantity: number }) => (quantity > 3 ? 'large' : 'small'),
    },
  },
  state: 'approval',
  transitions: { approve: { from: ['asked'], to: 'approved' } },
  events: ({ after, before }) => ({
    type: 'order.changed',
    data: { reference: (after ?? before)?.reference },
    audience: { broadcast: true },
  }),
  admin: { rows: true },
});

class OrderController extends CrudController(orderResource, { permission: isStaff, search: ['reference', 'remark'] }) {}

class LiveOrderController extends CrudController(orderResource, { permission: isStaff, live: true }) {}
class LiveCustomerController extends CrudController(customerResource, { permission: isStaff, live: true }) {}

/** Orders of customers, declared as CRUD resources: the admin site has from it what it does with the list. */
export function ordersModule({ live = false } = {}): Module {
  return {
    name: 'orders',
    models: [customers, orders, orderLines],
    resources: [customerResource, lineResource],
    migrations: [
      migration('0001_initial', [
        createTable('customers', customerColumns),
        createTable('orders', { ...orderColumns, customer_id: t.ref('customers') }, { indexes }),
        createTable('order_lines', { ...lineColumns, order_id: t.ref('orders') }, { indexes: lineIndexes }),
      ]),
    ],
    mount: live
      ? { '/v1/orders': new LiveOrderController(), '/v1/customers': new LiveCustomerController() }
      : { '/v1/orders': new OrderController() },
    admin: {
      resources: [
        modelResource(customerResource, { singular: 'Customer', group: 'Shop', auditReads: true }),
        modelResource(orderResource, { singular: 'Order', group: 'Shop', title: 'reference' }),
      ],
    },
  };
}
