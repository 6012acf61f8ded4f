import { hasScopes, type Module } from 'kit';
import { CrudController, resource } from 'kit/crud';
import { createTable, migration, model, t, timestamps } from 'kit/db';
import { orderErrors } from '../orders/errors.ts';
import { totalOf } from '../orders/price.ts';
import { settings } from '../settings.ts';

const columns = {
  id: t.uuidv7().pk(),
  /** Set from the organization that the request acts for, never by a client. */
  organization_id: t.text(64).readOnly(),
  item: t.text({ min: 1, max: 120 }),
  quantity: t.int({ min: 1 }),
  total: t.decimal(12, 2).readOnly(),
  currency: t.text(3).readOnly(),
  ...timestamps(),
};
const indexes = [{ columns: ['organization_id', '-id'] }];

const orders = model('organization_orders', columns, { indexes });

/** Members see the orders of their organization; those of another one do not exist for them. */
const orderResource = resource(orders, {
  tenant: 'organization_id',
  input: ['item', 'quantity'],
  hooks: {
    async create({ input, services }, next) {
      const { currency, unit_price, quantity_max } = (await services.get(settings)).current;
      if (input.quantity > quantity_max) throw orderErrors.quantity_too_large({ extensions: { quantity_max } });
      return next({ ...input, currency, total: totalOf(unit_price, input.quantity) });
    },
  },
});

export class OrderController extends CrudController(orderResource, {
  permission: hasScopes({ allowUnscoped: true }),
  scope: 'orders',
  operations: {
    list: { summary: 'Orders of the organization, newest first' },
    create: { summary: 'Place an order', raises: [orderErrors.quantity_too_large] },
    update: false,
    partialUpdate: false,
    destroy: false,
  },
}) {}

export const organizationOrders: Module = {
  name: 'organization_orders',
  models: [orders],
  migrations: [migration('0001_initial', [createTable('organization_orders', columns, { indexes })])],
  errors: orderErrors,
};
