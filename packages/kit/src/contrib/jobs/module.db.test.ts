import { expect, test } from 'vitest';
import { z } from 'zod';
import { describeDatabases } from '../../testing/databases.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { testApp } from '../../testing/test-app.ts';
import { job } from './declare/job.ts';
import { jobs } from './module.ts';
import { startJob } from './start/start-job.ts';
import { runDueJobs } from './manage/work-jobs.ts';

const input = z.object({});
const delayed = job('delayed', { input, run: () => undefined });
const nightly = job('nightly', { input, schedule: { cron: '0 3 * * *', input: {} }, run: () => undefined });
const START = '2020-05-01T00:00:00Z';

describeDatabases('an application with jobs', (database) => {
  test('the clock of the app decides when jobs are due, whichever clock the database was opened with', async () => {
    const clock = fakeClock(START);
    await using app = await testApp({ database: database.db, modules: [jobs({ jobs: [delayed] })], mount: {}, clock });
    const { id } = await app.app.db.transaction((tx) => startJob(tx, delayed, {}, { delaySeconds: 60 }));
    expect(await database.db.query('select created_at from jobs where id = $1', [id])).toEqual([{ created_at: new Date(START) }]);
    expect(await runDueJobs(app.app.db)).toMatchObject({ succeeded: 0 });
    clock.advance(60_000);
    expect(await runDueJobs(app.app.db)).toMatchObject({ succeeded: 1 });
  });

  test('a recurring job counts from the start of the app: the first tick after it is not missed', async () => {
    const clock = fakeClock(START);
    await using app = await testApp({ database: database.db, modules: [jobs({ jobs: [nightly] })], mount: {}, clock });
    clock.advance(3 * 3_600_000);
    expect(await runDueJobs(app.app.db)).toMatchObject({ succeeded: 1 });
  });

  test('an app with recurring jobs starts on a database that is not migrated yet', async () => {
    await database.db.query('drop table if exists job_schedules');
    await using app = await testApp({ database: database.db, migrate: false, modules: [jobs({ jobs: [nightly] })], mount: {} });
    expect(app.records).toContainEqual(expect.objectContaining({ msg: 'could not record the schedules of jobs' }));
  });
});
