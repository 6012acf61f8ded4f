import { coreErrors, emit } from 'kit';
import type { Db } from 'kit/db';
import { announce } from './announce.ts';
import { orderErrors } from '../errors.ts';
import type { Order } from '../models.ts';
import { OrderPaid } from '../order-paid.ts';
import { closeOpenOrder, orderOf } from './store.ts';

/** Pays or cancels an order that is still open, and says so by webhook, or does neither. */
export async function closeOrder(db: Db, ownerId: string, id: string, status: 'paid' | 'cancelled', now: Date): Promise<Order> {
  return db.transaction(async (tx) => {
    const closed = await closeOpenOrder(tx, ownerId, id, status, now);
    if (closed !== undefined) {
      await announce(tx, `order.${status}`, closed);
      if (status === 'paid') await emit(tx, OrderPaid, { id: closed.id, owner_id: closed.owner_id, total: closed.total });
      return closed;
    }
    const order = await orderOf(tx, ownerId, id);
    if (order === undefined) throw coreErrors.not_found();
    throw orderErrors.invalid_transition({ detail: `The order is ${order.status}; only an open order can be ${status}.` });
  });
}
