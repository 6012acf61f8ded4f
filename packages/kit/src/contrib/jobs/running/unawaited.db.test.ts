import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { describeJobs } from '../../../../test/jobs/describe-jobs.ts';
import { cancelJob } from '../manage/cancel.ts';
import { job, type JobContext } from '../declare/job.ts';
import { recordedSteps } from '../rows/store.ts';
import { JobWorker } from './worker.ts';

type Context = JobContext<{ n: number }>;
/** What the handler does, test by test. */
let handle: (context: Context) => unknown = () => undefined;

const careless = job('careless', {
  input: z.object({ n: z.int() }),
  retry: { attempts: 2, firstDelaySeconds: 10 },
  run: async (context) => void (await handle(context)),
});

/** A promise that nobody waits for, as a handler leaves it behind. */
const leave = (promise: Promise<unknown>): void => void promise;

describeJobs('a handler that does not wait for its promises', { jobs: [careless] }, (bench) => {
  const { clock, start, read, run } = bench;
  // Node ends a process for one of these, with all of its jobs.
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => void unhandled.push(reason);
  beforeAll(() => void process.on('unhandledRejection', note));
  afterAll(() => void process.off('unhandledRejection', note));

  const tell = (tx: { query(text: string): Promise<unknown> }) =>
    tx.query(`update jobs set progress_message = 'effect' where name = 'careless'`);

  test('progress, step and commit after a cancel do not end the process', async () => {
    const entered = Promise.withResolvers<void>();
    const cancelled = Promise.withResolvers<void>();
    handle = async ({ progress, step, commit, signal }) => {
      entered.resolve();
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      leave(progress(50));
      leave(step('mail', () => 1));
      leave(step.commit('book', async () => 1));
      leave(commit(async () => 1));
      cancelled.resolve();
    };
    const { id } = await start(careless, { n: 1 });
    const worker = new JobWorker(bench.jobs, { pollIntervalMs: 20 });
    await worker.start();
    await entered.promise;
    await bench.db.transaction((tx) => cancelJob(tx, id));
    await cancelled.promise;
    await worker.stop();
    await pause(0);
    expect(unhandled).toEqual([]);
    expect((await read(id)).status).toBe('cancelled');
  });

  test('a commit that is under way when the handler returns decides: its effects and the success are one', async () => {
    handle = ({ commit }) => leave(commit(async (tx) => (await pause(30), void (await tell(tx)))));
    const { id } = await start(careless, { n: 2 });
    await run();
    expect(await read(id)).toMatchObject({ status: 'succeeded', progress_message: 'effect' });

    handle = ({ commit }) =>
      leave(
        commit(async () => {
          await pause(30);
          throw new Error('full');
        }),
      );
    const failing = await start(careless, { n: 3 });
    await run();
    expect(await read(failing.id)).toMatchObject({ status: 'queued', attempts: 1 });
    await bench.db.transaction((tx) => cancelJob(tx, failing.id));
    expect(unhandled).toEqual([]);
  });

  test('a step that is under way is recorded, whether the handler returned or another step failed; one that fails, fails the attempt', async () => {
    handle = ({ step }) => leave(step('slow', () => pause(30, 'done')));
    const { id } = await start(careless, { n: 4 });
    await run();
    expect((await read(id)).status).toBe('succeeded');
    expect((await recordedSteps(bench.db, id)).map(({ name }) => name)).toEqual(['slow']);

    const slow = vi.fn(() => pause(30, 'done'));
    handle = ({ step, attempt }) =>
      Promise.all([
        step('slow', slow),
        step('quick', () => {
          if (attempt === 1) throw new Error('not yet');
        }),
      ]);
    const both = await start(careless, { n: 5 });
    await run();
    expect((await read(both.id)).status).toBe('queued');
    clock.advance(60_000);
    await run();
    expect((await read(both.id)).status).toBe('succeeded');
    expect(slow).toHaveBeenCalledTimes(1);

    handle = ({ step }) => leave(step('broken', () => pause(30).then(() => Promise.reject(new Error('full')))));
    const broken = await start(careless, { n: 6 });
    await run();
    expect(await read(broken.id)).toMatchObject({ status: 'queued', attempts: 1 });
    await bench.db.transaction((tx) => cancelJob(tx, broken.id));
    expect(unhandled).toEqual([]);
  });
});
