import { t } from '../../../db/declare/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { addColumn } from '../../../db/migrations/operation.ts';

export const suspension = migration('0002_suspension', [
  addColumn('tenants', 'suspended_at', t.timestamp().nullable()),
  addColumn('tenants', 'suspended_reason', t.text(300).nullable()),
]);
