import { migration } from '../../../db/migrations/migration.ts';
import { createIndex } from '../../../db/migrations/operation.ts';

/** The page, the export and the erasure of a tenant look for its keys. */
export const tenantIndex = migration('0004_tenant_index', [
  createIndex('api_keys', { columns: ['tenant_id', 'id'], where: 'tenant_id is not null', name: 'api_keys_tenant' }),
]);
