import { t } from '../../../db/declare/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { addColumn } from '../../../db/migrations/operation.ts';

/** Null: keys from before act as they did. */
export const tenant = migration('0002_tenant', [addColumn('api_keys', 'tenant_id', t.text(255).nullable())]);
