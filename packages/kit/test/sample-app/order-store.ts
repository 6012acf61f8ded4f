import type * as z from 'zod';
import { coreErrors } from '../../src/errors/core-errors.ts';
import type { Database, Db } from '../../src/db/engine/db.ts';
import { migrate } from '../../src/db/index.ts';
import { uuidv7 } from '../../src/db/values/uuidv7.ts';
import { sampleModules } from './modules.ts';
import type { Order, OrderInput } from './schemas.ts';

export type OrderRow = z.output<typeof Order>;
export type OrderValues = z.output<typeof OrderInput>;

interface StoredOrder extends Omit<OrderRow, 'document'> {
  readonly document: string;
}

/** The same tables on both databases. Lines are unique per order, so a hostile payload can fail in the middle of a write. */
export async function createTables(db: Database): Promise<void> {
  await migrate(db, sampleModules);
  await db.query(
    'create table orders (id text primary key, owner_id text not null, title text not null, total text not null, priority integer not null, document text not null)',
  );
  await db.query(
    'create table order_lines (order_id text not null references orders (id) on delete cascade, sku text not null, quantity integer not null, primary key (order_id, sku))',
  );
}

const parsed = (row: StoredOrder): OrderRow => ({ ...row, document: JSON.parse(row.document) as Record<string, unknown> });

/** One order and its lines in the caller's transaction. A line given twice is refused after the order was inserted. */
export async function insertOrder(tx: Db, owner: string, values: OrderValues): Promise<OrderRow> {
  const row = {
    id: uuidv7(),
    owner_id: owner,
    title: values.title,
    total: values.total,
    priority: values.priority,
    document: JSON.stringify(values),
  };
  await tx.query('insert into orders (id, owner_id, title, total, priority, document) values ($1, $2, $3, $4, $5, $6)', Object.values(row));
  const seen = new Set<string>();
  for (const { sku, quantity } of values.lines) {
    if (seen.has(sku)) throw coreErrors.conflict({ detail: `The line ${sku} appears twice.` });
    seen.add(sku);
    await tx.query('insert into order_lines (order_id, sku, quantity) values ($1, $2, $3)', [row.id, sku, quantity]);
  }
  return parsed(row);
}

export async function findOrder(db: Db, id: string): Promise<OrderRow> {
  const [row] = await db.query<StoredOrder>('select id, owner_id, title, total, priority, document from orders where id = $1', [id]);
  if (row === undefined) throw coreErrors.not_found();
  return parsed(row);
}

export async function listOrders(db: Db, filter: { search?: string | undefined; limit: number; offset: number }): Promise<OrderRow[]> {
  const rows = await db.query<StoredOrder>(
    'select id, owner_id, title, total, priority, document from orders where title like $1 order by id limit $2 offset $3',
    [`%${filter.search ?? ''}%`, filter.limit, filter.offset],
  );
  return rows.map(parsed);
}

/** What must hold whatever was sent: every order has lines, every line has an order, every document is the one that was valid. */
export async function countOrders(db: Db): Promise<{ orders: number; lines: number; empty: number; orphans: number }> {
  const count = async (text: string): Promise<number> => Number((await db.query<{ n: number | string | bigint }>(text))[0]?.n);
  return {
    orders: await count('select count(*) as n from orders'),
    lines: await count('select count(*) as n from order_lines'),
    empty: await count('select count(*) as n from orders o where not exists (select 1 from order_lines l where l.order_id = o.id)'),
    orphans: await count('select count(*) as n from order_lines l where not exists (select 1 from orders o where o.id = l.order_id)'),
  };
}
