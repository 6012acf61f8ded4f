import { t } from '../../../db/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { addColumn, createIndex } from '../../../db/migrations/operation.ts';

/** A deleted upload counts for its owner's quota until nothing can be sent to its URL any more. */
export const removalsWithQuota = migration('0003_removals_with_quota', [
  addColumn('upload_removals', 'owner_id', t.text(64).nullable()),
  addColumn('upload_removals', 'tenant_key', t.text(200).nullable()),
  addColumn('upload_removals', 'size', t.bigint().nullable()),
  createIndex('upload_removals', { columns: ['owner_id', 'tenant_key'] }),
]);
