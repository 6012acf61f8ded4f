import { insert, type Db } from 'kit/db';
import { announce } from './announce.ts';
import { orderErrors } from '../errors.ts';
import { orders, type Order } from '../models.ts';
import { totalOf } from '../price.ts';

export interface NewOrder {
  readonly item: string;
  readonly quantity: number;
}

export interface OrderRules {
  readonly currency: string;
  readonly unit_price: string;
  readonly quantity_max: number;
}

/** Takes an order at the price of the day, and says so by webhook, or does neither. */
export async function placeOrder(db: Db, ownerId: string, { item, quantity }: NewOrder, rules: OrderRules): Promise<Order> {
  const { currency, unit_price, quantity_max } = rules;
  if (quantity > quantity_max) throw orderErrors.quantity_too_large({ extensions: { quantity_max } });
  return db.transaction(async (tx) => {
    const order = await insert(tx, orders, { owner_id: ownerId, item, quantity, currency, total: totalOf(unit_price, quantity) });
    await announce(tx, 'order.created', order);
    return order;
  });
}
