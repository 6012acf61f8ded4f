import { t } from '../../../db/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { addColumn } from '../../../db/migrations/operation.ts';

/** The trace of the request that started a job, so that its runs belong to it hours later. */
export const traceparent = migration('0002_traceparent', [...addColumn('jobs', 'traceparent', t.text(55).nullable())]);
