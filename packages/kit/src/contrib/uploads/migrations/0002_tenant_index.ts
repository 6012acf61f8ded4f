import { migration } from '../../../db/migrations/migration.ts';
import { createIndex } from '../../../db/migrations/operation.ts';

/** The page, the export and the erasure of a tenant look for its uploads. */
export const tenantIndex = migration('0002_tenant_index', [
  createIndex('uploads', { columns: ['tenant_key', 'id'], where: "tenant_key <> ''", name: 'uploads_of_tenant' }),
]);
