import { expect, test } from 'vitest';
import { migrateJobs } from '../../../../test/jobs/describe-jobs.ts';
import { checkDrift } from '../../../db/index.ts';
import { describeDatabases } from '../../../testing/index.ts';
import { jobModels } from '../models.ts';
import { jobMigrations } from './all.ts';

describeDatabases('the tables of jobs', (database) => {
  test('are those of the models', async () => {
    await migrateJobs(database.db);
    expect(await checkDrift([{ name: 'jobs', models: [...jobModels], migrations: jobMigrations }], database.db)).toEqual({
      models: [],
      database: [],
      additions: [],
    });
  });
});
