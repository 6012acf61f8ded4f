import type { Db } from 'kit/db';
import type { Order } from './models.ts';

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
