import { addColumn, createIndex } from '../../db/migrations/operation.ts';
import { migration } from '../../db/migrations/migration.ts';
import { t } from '../../db/declare/column.ts';

export const sharedViews = migration('0003_shared_views', [
  ...addColumn('admin_saved_filters', 'shared_with', t.enum(['read_only', 'operator', 'administrator']).nullable()),
  createIndex('admin_saved_filters', { columns: ['resource', 'shared_with'] }),
]);
