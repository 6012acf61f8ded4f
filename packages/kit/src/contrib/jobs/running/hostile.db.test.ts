import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { describeJobs } from '../../../../test/jobs/describe-jobs.ts';
import { job, type JobContext } from '../job.ts';
import { permanent } from '../failure.ts';
import { retryJob } from '../retry.ts';
import { JobWorker } from './worker.ts';

const input = z.object({ n: z.int() });
let handle: (context: JobContext<{ n: number }>) => unknown = () => undefined;

const shared = job('shared', { input, concurrency: 2, timeoutMs: 3_600_000, run: async (context) => void (await handle(context)) });
const endless = job('endless', { input, timeoutMs: 20, retry: { attempts: 1 }, run: () => new Promise<void>(() => undefined) });

describeJobs('hostile jobs and clocks', { jobs: [shared, endless] }, (bench) => {
  const { clock, start, read, run } = bench;

  test('a handler that never returns ends as failed, and the jobs behind it run', async () => {
    const seen: number[] = [];
    handle = ({ input: { n } }) => void seen.push(n);
    const stuck = await start(endless, { n: 0 }, { priority: 1 });
    for (let n = 1; n <= 5; n++) await start(shared, { n });
    await run();
    expect(new Set(seen)).toEqual(new Set([1, 2, 3, 4, 5]));
    expect(seen).toHaveLength(5);
    expect(await read(stuck.id)).toMatchObject({ status: 'failed', error_code: 'timed_out' });
  });

  test('a job that this code does not know, first in its queue, does not hold the others up', async () => {
    const unknown = await start(shared, { n: 0 }, { priority: 9 });
    await bench.db.query(`update jobs set name = 'from.the.future' where id = $1`, [unknown.id]);
    handle = () => undefined;
    const known = await start(shared, { n: 1 });
    await run();
    expect((await read(known.id)).status).toBe('succeeded');
    expect(await read(unknown.id)).toMatchObject({ status: 'queued', attempts: 0 });
  });

  test('a clock that steps forward and back while a job runs does not commit its effects twice, and the job ends', async () => {
    await bench.db.query('create table if not exists effects (n integer not null)');
    await bench.db.query('delete from effects');
    const gate = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    let runs = 0;
    handle = async ({ input: { n }, commit }) => {
      runs += 1;
      if (runs === 1) {
        reached.resolve();
        await gate.promise;
      }
      await commit((tx) => tx.query('insert into effects (n) values ($1)', [n]).then(() => undefined));
    };
    const { id } = await start(shared, { n: 1 });
    const first = new JobWorker(bench.jobs, { name: 'first' });
    const running = first.runOnce();
    await reached.promise;
    for (const stepMs of [2 * 3_600_000, -5 * 3_600_000, 4 * 3_600_000]) {
      clock.advance(stepMs);
      await run({ name: 'second' });
    }
    gate.resolve();
    await running;
    await first.stop();
    clock.advance(3_600_000);
    await run();
    expect(await bench.db.query('select n from effects')).toEqual([{ n: 1 }]);
    expect((await read(id)).status).toBe('succeeded');
    // Leases are counted on PostgreSQL's own clock, so no step of this host's takes the job away.
    expect(runs).toBe(bench.database.dialect === 'postgres' ? 1 : 2);
  });

  test('of ten retries at once exactly one queues the job', async () => {
    handle = () => {
      throw permanent(new Error('no'));
    };
    const { id } = await start(shared, { n: 1 });
    await run();
    const retries = Array.from({ length: 10 }, () => bench.db.transaction((tx) => retryJob(tx, id)));
    const outcomes = await Promise.allSettled(retries);
    const codes = outcomes.map((outcome) => (outcome.status === 'fulfilled' ? 'queued' : (outcome.reason as { code: string }).code));
    expect(codes.toSorted((a, b) => a.localeCompare(b))).toEqual([...Array.from({ length: 9 }, () => 'job_not_retryable'), 'queued']);
    handle = () => undefined;
    await run();
    await vi.waitUntil(async () => (await read(id)).status === 'succeeded', { timeout: 20_000 });
    expect(await read(id)).toMatchObject({ attempts: 1 });
  });
});
