import { t } from '../../../db/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { addColumn } from '../../../db/migrations/operation.ts';

/** The schedule that the last tick belongs to: a changed one starts no jobs for ticks that it never had. */
export const scheduleText = migration('0004_schedule_text', [...addColumn('job_schedules', 'schedule', t.text().nullable())]);
