import { isAuthenticated } from 'kit';
import { CrudController, many, one, resource } from 'kit/crud';
import { model, t, timestamps, versioned } from 'kit/db';

export const customers = model('customers', { id: t.uuidv7().pk(), name: t.text(80), terms: t.int().dbDefault(30) });
export const orders = model('orders', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  org_id: t.uuid().readOnly(),
  customer_id: t.ref(() => customers),
  status: t.enum(['open', 'paid', 'cancelled']).dbDefault('open'),
  total: t.decimal(12, 2),
  quantity: t.int(),
  note: t.text(200).nullable(),
  is_gift: t.bool().dbDefault(false),
  due_at: t.timestamp().nullable(),
  ...timestamps(),
  ...versioned(),
});
export const orderItems = model('order_items', { id: t.uuidv7().pk(), order_id: t.ref(() => orders), sku: t.text(40), amount: t.int() });
export const relations = { customer: one(() => customers, 'customer_id'), items: many(() => orderItems, 'order_id') };
export const orderResource = resource(orders, {
  owner: 'owner_id',
  version: 'version',
  relations,
  state: 'status',
  transitions: { pay: { from: ['open'], to: 'paid' } },
});
export class OrderController extends CrudController(orderResource, { permission: isAuthenticated }) {}
