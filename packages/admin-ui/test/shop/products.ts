import { modelResource } from '../../../kit/src/admin/index.ts';
import type { Module } from '../../../kit/src/app/index.ts';
import { createTable, migration, model, t, timestamps } from '../../../kit/src/db/index.ts';

const columns = {
  id: t.uuidv7().pk(),
  name: t.text({ min: 1, max: 120 }),
  sku: t.text(20).unique(),
  price: t.decimal(10, 2),
  stock: t.int(),
  is_listed: t.bool().dbDefault(true),
  roast: t.enum(['light', 'medium', 'dark']).nullable(),
  notes: t.text().nullable(),
  ...timestamps(),
};

/** A table of the shop's own: the admin site shows it from its model alone. */
export const productTable = model('products', columns);

export function products(): Module {
  return {
    name: 'products',
    models: [productTable],
    migrations: [migration('0001_initial', [createTable('products', columns)])],
    admin: { resources: [modelResource(productTable, { singular: 'Product', group: 'Shop', title: 'name' })] },
  };
}
