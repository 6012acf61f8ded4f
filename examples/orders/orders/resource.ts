import { emit } from 'kit';
import { uploadRelation } from 'kit/contrib/uploads';
import { grants } from 'kit/contrib/grants';
import { resource } from 'kit/crud';
import { settings } from '../settings.ts';
import { orderErrors } from './errors.ts';
import { orders } from './models.ts';
import { OrderPaid } from './order-paid.ts';
import { totalOf } from './price.ts';

const EVENTS: Readonly<Record<string, string>> = {
  create: 'order.created',
  update: 'order.updated',
  destroy: 'order.deleted',
  'transition:pay': 'order.paid',
  'transition:cancel': 'order.cancelled',
};

/** Who may see and change which order, on every path that reaches one. */
export const orderResource = resource(orders, {
  owner: 'owner_id',
  /** The owner holds everything; a colleague or a group what the owner shared. */
  access: grants(orders),
  version: 'version',
  relations: { invoice: uploadRelation('invoice_id') },
  input: ['item', 'quantity', 'invoice_id'],
  state: 'status',
  transitions: {
    pay: { from: ['open'], to: 'paid', summary: 'Pay the order' },
    cancel: { from: ['open'], to: 'cancelled', summary: 'Cancel the order' },
  },
  hooks: {
    /** Takes an order at the price of the day. */
    async create({ input, services }, next) {
      const { currency, unit_price, quantity_max } = (await services.get(settings)).current;
      if (input.quantity > quantity_max) throw orderErrors.quantity_too_large({ extensions: { quantity_max } });
      return next({ ...input, currency, total: totalOf(unit_price, input.quantity) });
    },
    /** An open order may still change, at the price of the day. An invoice may also come later. */
    async update({ input, before, services }, next) {
      const isOrderChanged = input.item !== undefined || input.quantity !== undefined;
      if (before.status !== 'open' && isOrderChanged) throw orderErrors.order_closed();
      if (input.quantity === undefined) return next(input);
      const { unit_price, quantity_max } = (await services.get(settings)).current;
      if (input.quantity > quantity_max) throw orderErrors.quantity_too_large({ extensions: { quantity_max } });
      return next({ ...input, total: totalOf(unit_price, input.quantity) });
    },
  },
  async onChange({ operation, after, tx }) {
    if (operation === 'transition:pay' && after !== null)
      await emit(tx, OrderPaid, { id: after.id, owner_id: after.owner_id, total: after.total });
  },
  /** The event exists exactly when the change does: it is a row of the same transaction. */
  events({ operation, before, after }) {
    const order = after ?? before;
    const type = EVENTS[operation];
    if (order === null || type === undefined) return null;
    const { id, owner_id, item, quantity, total, currency, status } = order;
    return { type, data: { id, item, quantity, total, currency, status }, audience: { owner: owner_id } };
  },
  /** Support sees every order, shared with it or not. */
  admin: { rows: true, access: false },
});
