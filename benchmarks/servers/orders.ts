// What every contender of http-overhead serves: the same schemas, credential, rows and output columns.
import { z } from 'zod';

export const TOKEN = 'benchmark-token';

export const OrderId = z.object({ id: z.string().min(1).max(40) });
export const OrderIn = z.object({
  customer: z.string().min(1).max(100),
  total: z.number().nonnegative(),
  status: z.enum(['draft', 'paid']),
  lines: z.array(z.object({ sku: z.string().max(40), quantity: z.int().min(1).max(1000) })).max(100),
});
export const OrderOut = z.object({ id: z.string(), customer: z.string(), total: z.number(), status: z.string(), created_at: z.string() });

export interface OrderRow extends z.infer<typeof OrderOut> {
  readonly internal_note: string;
}

const created_at = '2026-01-02T03:04:05.678Z';
const rows = new Map<string, OrderRow>();
for (let index = 0; index < 1000; index += 1) {
  const id = `order-${index}`;
  rows.set(id, { id, customer: `Customer ${index}`, total: index * 1.5, status: 'paid', created_at, internal_note: 'never sent' });
}

export function findOrder(id: string): OrderRow | undefined {
  return rows.get(id);
}

export function createOrder({ customer, total, status }: z.infer<typeof OrderIn>): OrderRow {
  return { id: 'order-new', customer, total, status, created_at, internal_note: 'never sent' };
}

const user = { id: 'ann', username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false };

/** The authentication stub: one header, one comparison, no I/O. */
export function userOf(authorization: string | undefined): typeof user | null {
  return authorization === `Bearer ${TOKEN}` ? user : null;
}
