import { createTable, migration, t } from 'kit/db';

export const initial = migration('0001_initial', [
  createTable('feature_flags', {
    name: t.text(64).pk(),
    percentage: t.int().dbDefault(0),
    created_at: t.timestamp().dbDefault('now'),
    updated_at: t.timestamp().dbDefault('now'),
  }),
]);
