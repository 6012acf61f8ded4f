import { t } from '../../../db/declare/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { addColumn } from '../../../db/migrations/operation.ts';

/** Null: no quota, as before. */
export const quota = migration('0003_quota', [addColumn('api_keys', 'quota', t.text(40).nullable())]);
