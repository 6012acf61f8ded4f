import { kyselyOf } from 'kit/kysely';
import type { Db } from 'kit/db';
import type { Order, OrderTables } from '../models.ts';

export interface OrderPage {
  readonly items: Order[];
  readonly count: number;
}

/** Newest first: keys are UUIDv7, so their order is the order of creation. */
export async function ordersOf(db: Db, ownerId: string, page: number, pageSize: number): Promise<OrderPage> {
  const own = kyselyOf<OrderTables>(db).selectFrom('orders').where('owner_id', '=', ownerId);
  const items = await own
    .selectAll()
    .orderBy('id', 'desc')
    .limit(pageSize)
    .offset((page - 1) * pageSize)
    .execute();
  const counted = await own.select((e) => e.fn.countAll().as('count')).executeTakeFirstOrThrow();
  return { items, count: Number(counted.count) };
}

export async function orderOf(db: Db, ownerId: string, id: string): Promise<Order | undefined> {
  return kyselyOf<OrderTables>(db).selectFrom('orders').selectAll().where('id', '=', id).where('owner_id', '=', ownerId).executeTakeFirst();
}

/** Check and write are one statement, so that two payments of one order cannot both succeed. */
export async function closeOpenOrder(
  db: Db,
  ownerId: string,
  id: string,
  status: 'paid' | 'cancelled',
  now: Date,
): Promise<Order | undefined> {
  return kyselyOf<OrderTables>(db)
    .updateTable('orders')
    .set((column) => ({ status, updated_at: now, version: column('version', '+', 1) }))
    .where('id', '=', id)
    .where('owner_id', '=', ownerId)
    .where('status', '=', 'open')
    .returningAll()
    .executeTakeFirst();
}

export async function attachInvoice(db: Db, ownerId: string, id: string, uploadId: string, now: Date): Promise<Order | undefined> {
  return kyselyOf<OrderTables>(db)
    .updateTable('orders')
    .set((column) => ({ invoice_id: uploadId, updated_at: now, version: column('version', '+', 1) }))
    .where('id', '=', id)
    .where('owner_id', '=', ownerId)
    .returningAll()
    .executeTakeFirst();
}
