import { createTable, migration, t, timestamps } from 'kit/db';

export const initial = migration('0001_initial', [
  createTable(
    'orders',
    {
      id: t.uuidv7().pk(),
      owner_id: t.ref('users'),
      item: t.text({ min: 1, max: 120 }),
      quantity: t.int(),
      total: t.decimal(12, 2),
      currency: t.text(3),
      status: t.enum(['open', 'paid', 'cancelled']).dbDefault('open'),
      ...timestamps(),
    },
    { indexes: [{ columns: ['owner_id', 'id'] }] },
  ),
]);
