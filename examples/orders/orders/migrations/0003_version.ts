import { addColumn, createIndex, migration, versioned } from 'kit/db';

export const version = migration('0003_version', [
  ...addColumn('orders', 'version', versioned().version),
  createIndex('orders', { columns: ['owner_id', 'status', '-id'] }),
  createIndex('orders', { columns: ['owner_id', 'created_at'] }),
  createIndex('orders', { columns: ['owner_id', 'total'] }),
]);
