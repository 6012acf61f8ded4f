import { migration } from '../../../db/migrations/migration.ts';
import { createIndex } from '../../../db/migrations/operation.ts';

/** Jobs about a record have a serial or unique key that names it (`order:<id>`): its page in the admin site lists them, ended ones too. */
export const jobsOfRecord = migration('0003_jobs_of_record', [
  createIndex('jobs', { columns: ['serial_key', 'id'], where: 'serial_key is not null', name: 'jobs_by_serial_key' }),
  createIndex('jobs', { columns: ['unique_key', 'id'], where: 'unique_key is not null', name: 'jobs_by_unique_key' }),
]);
