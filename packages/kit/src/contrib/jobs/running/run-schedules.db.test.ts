import { expect, test } from 'vitest';
import { z } from 'zod';
import { lockRows } from '../../../../test/lock-rows.ts';
import { describeJobs } from '../../../../test/jobs/describe-jobs.ts';
import { job } from '../declare/job.ts';
import { JobCatalog } from '../declare/job-catalog.ts';
import { bindJobs, unbindJobs, type Jobs } from '../rows/jobs.ts';
import { pruneJobs } from '../running/prune.ts';
import { runSchedules } from './run-schedules.ts';

const input = z.object({ kind: z.string() });
const nightly = job('nightly', { input, schedule: { cron: '0 3 * * *', input: { kind: 'all' } }, run: () => undefined });
const patient = job('patient', { input, schedule: { cron: '0 3 * * *', missed: 'once', input: { kind: 'all' } }, run: () => undefined });

describeJobs('recurring jobs', { jobs: [nightly, patient] }, (bench) => {
  const { clock } = bench;
  const started = async (): Promise<string[]> =>
    (await bench.db.query<{ name: string }>('select name from jobs order by name, id')).map(({ name }) => name);

  test('exactly one job per tick, whatever the number of processes, prunes and steps of the clock', async () => {
    clock.set('2026-03-01T12:00:00Z');
    await bench.db.query('delete from job_schedules');
    expect(await runSchedules(bench.jobs)).toEqual(new Date('2026-03-02T03:00:00Z'));
    expect(await started()).toEqual([]);
    clock.set('2026-03-02T03:00:01Z');
    await Promise.all(Array.from({ length: 5 }, () => runSchedules(bench.jobs)));
    expect(await started()).toEqual(['nightly', 'patient']);
    await bench.run();
    await pruneJobs(bench.db, new Date('2027-01-01'), 100);
    await runSchedules(bench.jobs);
    clock.set('2026-03-01T00:00:00Z');
    await runSchedules(bench.jobs);
    clock.set('2026-03-02T03:00:02Z');
    await runSchedules(bench.jobs);
    expect(await started()).toEqual([]);
  });

  test('missed ticks are skipped, or made up for once', async () => {
    clock.set('2026-03-01T12:00:00Z');
    await bench.db.query('delete from job_schedules');
    await runSchedules(bench.jobs);
    clock.set('2026-03-09T09:00:00Z');
    await runSchedules(bench.jobs);
    expect(await started()).toEqual(['patient']);
    expect(bench.logged.map(({ message }) => message)).toContain('skipped a missed run of a recurring job');
    clock.set('2026-03-10T03:00:00Z');
    await runSchedules(bench.jobs);
    expect(await started()).toEqual(['nightly', 'patient', 'patient']);
  });

  /** The same job in another version of the code. */
  const inVersion = (cron: string, missed: 'skip' | 'once' = 'once'): Jobs => {
    const definition = job('changing', { input, schedule: { cron, missed, input: { kind: 'all' } }, run: () => undefined });
    const jobs = { ...bench.jobs, settings: { ...bench.jobs.settings, catalog: new JobCatalog([definition]) } };
    unbindJobs(bench.db);
    bindJobs(jobs);
    return jobs;
  };
  const rebound = (): void => {
    unbindJobs(bench.db);
    bindJobs(bench.jobs);
  };
  const round = async (cron: string, at: string, missed?: 'skip' | 'once'): Promise<void> => {
    clock.set(at);
    await runSchedules(inVersion(cron, missed));
  };

  test('ten days without a worker start one job, however many rounds follow', async () => {
    await bench.db.query('delete from job_schedules');
    await round('* 9-16 * * *', '2026-03-01T12:00:30Z');
    const jobs = inVersion('* 9-16 * * *');
    clock.set('2026-03-11T20:00:00Z');
    for (let n = 0; n < 10; n++) await runSchedules(jobs);
    expect(await started()).toEqual(['changing']);
    rebound();
  });

  test.each(['skip', 'once'] as const)('a changed schedule starts no job for ticks that it never had (%s)', async (missed) => {
    await bench.db.query('delete from job_schedules');
    await round('0 3 * * *', '2026-03-01T12:00:00Z', missed);
    await round('* * * * *', '2026-03-02T02:00:30Z', missed);
    expect(await started()).toEqual([]);
    await round('* * * * *', '2026-03-02T02:01:10Z', missed);
    expect(await started()).toEqual(['changing']);
    rebound();
  });

  test('a schedule whose row has no text yet goes on', async () => {
    await bench.db.query('delete from job_schedules');
    await round('0 3 * * *', '2026-03-01T12:00:00Z');
    await bench.db.query('update job_schedules set schedule = null');
    await round('0 3 * * *', '2026-03-03T12:00:00Z');
    expect(await started()).toEqual(['changing']);
    rebound();
  });

  test('two versions of the code that change a schedule back and forth lose no tick and start none twice', async () => {
    await bench.db.query('delete from job_schedules');
    clock.set('2026-03-01T12:00:00Z');
    const [before, after] = [inVersion('*/10 * * * *'), inVersion('*/5 * * * *')];
    for (let second = 0; second <= 3600; second += 20) {
      clock.set(new Date(Date.parse('2026-03-01T12:00:00Z') + second * 1000).toISOString());
      // The job is the one of the version that is bound.
      for (const jobs of [before, after]) {
        unbindJobs(bench.db);
        bindJobs(jobs);
        await runSchedules(jobs);
      }
    }
    expect(await started()).toHaveLength(12);
    rebound();
  });

  test('a schedule that another transaction has locked holds up neither the other schedules nor finished jobs that are pruned', async ({
    skip,
  }) => {
    if (bench.db.dialect === 'sqlite') skip('SQLite has one writer at a time');
    clock.set('2026-03-01T12:00:00Z');
    await bench.db.query('delete from job_schedules');
    await runSchedules(bench.jobs);
    clock.set('2026-03-02T03:00:01Z');
    const release = await lockRows(bench.db, 'job_schedules', ['nightly'], 'name');
    expect(await runSchedules(bench.jobs)).toEqual(new Date('2026-03-02T03:00:02Z'));
    expect(await started()).toEqual(['patient']);
    await release();
    expect(await bench.run()).toMatchObject({ succeeded: 2 });
    const [{ id } = { id: '' }] = await bench.db.query<{ id: string }>('select id from jobs order by id');
    const unlock = await lockRows(bench.db, 'jobs', [id]);
    expect(await pruneJobs(bench.db, new Date('2027-01-01'), 100)).toBe(1);
    await unlock();
    expect(await pruneJobs(bench.db, new Date('2027-01-01'), 100)).toBe(1);
  });

  test('a worker runs them by itself', async () => {
    clock.set('2026-03-01T12:00:00Z');
    await bench.db.query('delete from job_schedules');
    await bench.run();
    clock.set('2026-03-02T03:00:01Z');
    expect(await bench.run()).toMatchObject({ succeeded: 2 });
  });
});
