import { createTable, migration, t } from '../../db/index.ts';

export const initial = migration('0001_throttles', [
  createTable('kit_throttles', { key: t.text().pk(), tat_us: t.bigint() }, { indexes: [{ columns: ['tat_us'] }] }),
]);
