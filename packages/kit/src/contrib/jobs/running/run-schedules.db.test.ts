import { expect, test } from 'vitest';
import { z } from 'zod';
import { describeJobs } from '../../../../test/jobs/describe-jobs.ts';
import { job } from '../job.ts';
import { pruneJobs } from '../prune.ts';
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
    expect(bench.logged.map(({ message }) => message)).toContain('a tick of a recurring job was missed and is passed over');
    clock.set('2026-03-10T03:00:00Z');
    await runSchedules(bench.jobs);
    expect(await started()).toEqual(['nightly', 'patient', 'patient']);
  });

  test('a worker runs them by itself', async () => {
    clock.set('2026-03-01T12:00:00Z');
    await bench.db.query('delete from job_schedules');
    await bench.run();
    clock.set('2026-03-02T03:00:01Z');
    expect(await bench.run()).toMatchObject({ succeeded: 2 });
  });
});
