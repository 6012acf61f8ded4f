import { t } from '../../column.ts';
import { migration } from '../../migrations/migration.ts';
import { addColumn } from '../../migrations/operation.ts';

export const idempotencyAudience = migration('0003_idempotency_audience', [
  addColumn('kit_idempotency', 'audience', t.text(64).nullable()),
]);
