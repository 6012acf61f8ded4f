import type { Db } from 'kit/db';
import type { Order, OrderTables } from './models.ts';

export interface OrderPage {
  readonly items: Order[];
  readonly count: number;
}

/** Newest first: keys are UUIDv7, so their order is the order of creation. */
export async function ordersOf(db: Db, ownerId: string, page: number, pageSize: number): Promise<OrderPage> {
  const own = db.tables<OrderTables>().selectFrom('orders').where('owner_id', '=', ownerId);
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
  return db.tables<OrderTables>().selectFrom('orders').selectAll().where('id', '=', id).where('owner_id', '=', ownerId).executeTakeFirst();
}

/** Check and write are one statement, so that two payments of one order cannot both succeed. */
export async function closeOpenOrder(
  db: Db,
  ownerId: string,
  id: string,
  status: 'paid' | 'cancelled',
  now: Date,
): Promise<Order | undefined> {
  return db
    .tables<OrderTables>()
    .updateTable('orders')
    .set({ status, updated_at: now })
    .where('id', '=', id)
    .where('owner_id', '=', ownerId)
    .where('status', '=', 'open')
    .returningAll()
    .executeTakeFirst();
}

export async function countOrders(db: Db): Promise<number> {
  const [row] = await db.query<{ count: number | bigint }>('select count(*) as count from orders');
  return Number(row?.count ?? 0);
}

/** Every order, oldest first, some at a time: in flat memory, however many there are. */
export function orderChunks(db: Db): AsyncIterable<Order[]> {
  return db.stream<Order>('select * from orders order by id');
}

export async function countByStatus(db: Db): Promise<Record<'open' | 'paid' | 'cancelled', number>> {
  const rows = await db.query<{ status: 'open' | 'paid' | 'cancelled'; count: number | bigint }>(
    'select status, count(*) as count from orders group by status',
  );
  const counts = { open: 0, paid: 0, cancelled: 0 };
  for (const { status, count } of rows) counts[status] = Number(count);
  return counts;
}

export async function attachInvoice(db: Db, ownerId: string, id: string, uploadId: string, now: Date): Promise<Order | undefined> {
  return db
    .tables<OrderTables>()
    .updateTable('orders')
    .set({ invoice_id: uploadId, updated_at: now })
    .where('id', '=', id)
    .where('owner_id', '=', ownerId)
    .returningAll()
    .executeTakeFirst();
}
