import { createTable } from '../../db/migrations/operation.ts';
import { migration } from '../../db/migrations/migration.ts';
import { t } from '../../db/declare/column.ts';

export const initial = migration('0001_throttles', [
  createTable('kit_throttles', { key: t.text().pk(), tat_us: t.bigint() }, { indexes: [{ columns: ['tat_us'] }] }),
]);
