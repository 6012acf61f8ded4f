import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { describeJobs } from '../../../../test/jobs/describe-jobs.ts';
import { job, type JobContext } from '../declare/job.ts';
import { permanent } from '../declare/failure.ts';
import { retryJob } from '../manage/retry.ts';
import { claimOne, type Claim } from './claim-store.ts';
import { renew } from './result-store.ts';
import { Runs } from './runs.ts';
import { JobWorker } from './worker.ts';

const input = z.object({ n: z.int() });
let handle: (context: JobContext<{ n: number }>) => unknown = () => undefined;

const shared = job('shared', { input, concurrency: 2, timeoutMs: 3_600_000, run: async (context) => void (await handle(context)) });
const verbose = job('verbose', { input, result: z.string(), run: (context) => handle(context) as string });
const endless = job('endless', { input, timeoutMs: 20, retry: { attempts: 1 }, run: () => new Promise<void>(() => undefined) });

describeJobs('hostile jobs and clocks', { jobs: [shared, verbose, endless] }, (bench) => {
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

  test('a running job that another transaction has locked does not keep the leases of the others from being renewed', async ({ skip }) => {
    if (bench.database.dialect === 'sqlite') skip('SQLite has one writer at a time');
    const claimOf = async (n: number): Promise<Claim> => {
      const { id } = await start(shared, { n });
      return (await claimOne(bench.db, id, { now: clock.now(), leaseMs: 60_000, worker: 'here' })) as Claim;
    };
    const [locked, other, gone] = [await claimOf(1), await claimOf(2), await claimOf(3)];
    await bench.db.query('update jobs set claim_token = $2 where id = $1', [gone.id, 'another']);
    const isLocked = Promise.withResolvers<void>();
    const free = Promise.withResolvers<void>();
    const holder = bench.db.transaction(async (tx) => {
      await tx.query('select id from jobs where id = $1 for update', [locked.id]);
      isLocked.resolve();
      await free.promise;
    });
    await isLocked.promise;
    const renewed = await renew(bench.db, [locked, other, gone], 3_600_000, clock.now());
    free.resolve();
    await holder;
    expect(renewed).toEqual(
      new Map([
        [locked.id, false],
        [other.id, true],
      ]),
    );
    expect((await renew(bench.db, [locked], 3_600_000, clock.now())).get(locked.id)).toBe(true);
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

  test('a handler that blocks the event loop past its lease: no job of that process saves anything late, and each commits once elsewhere', async () => {
    await bench.db.query('create table if not exists effects (n integer not null)');
    await bench.db.query('delete from effects');
    const late: unknown[] = [];
    const bothRun = Promise.withResolvers<void>();
    const unblocked = Promise.withResolvers<void>();
    const save = ({ input: { n }, commit }: JobContext<{ n: number }>): Promise<void> =>
      commit(async (tx) => void (await tx.query('insert into effects (n) values ($1)', [n])));
    handle = async (context) => {
      if (context.input.n === 2) {
        bothRun.resolve();
        await unblocked.promise;
      } else {
        await bothRun.promise;
        const until = performance.now() + 1100;
        while (performance.now() < until);
        unblocked.resolve();
      }
      await save(context).catch((error: unknown) => late.push(error));
    };
    const ids = [await start(shared, { n: 1 }), await start(shared, { n: 2 })].map(({ id }) => id);
    const blocked = new JobWorker({ ...bench.jobs, settings: { ...bench.jobs.settings, leaseMs: 1000 } });
    await blocked.runOnce();
    await blocked.stop();
    // On a busy machine a lease may end before the event loop is blocked, and the worker claims the job again.
    expect(late.length).toBeGreaterThanOrEqual(2);
    for (const error of late) expect(error).toMatchObject({ name: 'ClaimLost' });
    expect(await bench.db.query('select n from effects')).toEqual([]);
    handle = save;
    await bench.expireLeases();
    await run();
    expect(await bench.db.query('select n from effects order by n')).toEqual([{ n: 1 }, { n: 2 }]);
    for (const id of ids) {
      const { status, attempts } = await read(id);
      expect([status, attempts >= 2]).toEqual(['succeeded', true]);
    }
  });

  test('a result that outgrows 256 KiB fails permanently, returned or committed, and its effects are rolled back', async () => {
    await bench.db.query('create table if not exists effects (n integer not null)');
    await bench.db.query('delete from effects');
    const large = 'x'.repeat(256 * 1024);
    for (const run_ of [
      () => large,
      ({ commit }: JobContext) =>
        commit(async (tx) => {
          await tx.query('insert into effects (n) values (1)');
          return large;
        }),
    ]) {
      handle = run_;
      const { id } = await start(verbose, { n: 1 });
      await run();
      expect(await read(id)).toMatchObject({ status: 'failed', attempts: 1, error_code: 'payload_too_large', result: null });
    }
    expect(await bench.db.query('select n from effects')).toEqual([]);
  });

  test('a cancel that no message announces reaches the handler with the next renewal of its lease', async () => {
    const reached = Promise.withResolvers<void>();
    const told = Promise.withResolvers<unknown>();
    handle = async ({ signal }) => {
      reached.resolve();
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      told.resolve(signal.reason);
    };
    const { id } = await start(shared, { n: 1 });
    // So long that the end of the lease cannot be what the handler hears of.
    const leaseMs = 3_600_000;
    const claim = await claimOne(bench.db, id, { now: clock.now(), leaseMs, worker: 'first' });
    if (claim === undefined) throw new Error('the job is ready');
    const runs = new Runs(
      { ...bench.jobs, settings: { ...bench.jobs.settings, leaseMs } },
      () => [claim],
      () => undefined,
    );
    const running = runs.run(claim);
    await reached.promise;
    // What cancelJob writes, without its message.
    await bench.db.query(`update jobs set status = 'cancelled', claim_token = null, finished_at = $2 where id = $1`, [id, clock.now()]);
    runs.renewNow();
    expect(await told.promise).toMatchObject({ name: 'AbortError' });
    expect((await running).end).toMatchObject({ kind: 'lost' });
    expect(await read(id)).toMatchObject({ status: 'cancelled', result: null });
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
    await vi.waitUntil(async () => (await read(id)).status === 'succeeded', { timeout: 300_000 });
    expect(await read(id)).toMatchObject({ attempts: 1 });
  });
});
