import { createTable } from '../../../db/migrations/operation.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { t } from '../../../db/column.ts';

/** What workers count and no other row shows: claims that were lost, which are duplicates at the receiver. */
export const counters = migration('0007_counters', [createTable('webhook_counters', { name: t.text(50).pk(), value: t.bigint() })]);
