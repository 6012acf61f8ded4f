import type { Tables } from 'kit/kysely';
import { users } from 'kit/contrib/accounts';
import { uploadRef } from 'kit/contrib/uploads';
import { model, t, timestamps, versioned, type Row } from 'kit/db';

export const orders = model(
  'orders',
  {
    id: t.uuidv7().pk(),
    owner_id: t.ref(() => users).person(),
    item: t.text({ min: 1, max: 120 }),
    quantity: t.int({ min: 1 }),
    total: t.decimal(12, 2),
    currency: t.text(3),
    status: t.enum(['open', 'paid', 'cancelled']).dbDefault('open'),
    /** A complete upload of the caller: every other id is refused. */
    invoice_id: uploadRef().nullable(),
    ...timestamps(),
    ...versioned(),
  },
  {
    indexes: [
      { columns: ['owner_id', 'id'] },
      { columns: ['owner_id', 'status', '-id'] },
      { columns: ['owner_id', 'created_at'] },
      { columns: ['owner_id', 'total'] },
    ],
  },
);

export type Order = Row<typeof orders>;
/** For queries: `kyselyOf<OrderTables>(db).selectFrom('orders')`. */
export type OrderTables = Tables<{ orders: typeof orders }>;
