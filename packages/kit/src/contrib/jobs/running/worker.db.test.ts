import { expect, test, vi } from 'vitest';
import { isBehindPooler, NOTIFICATIONS_ARE_LOST } from '../../../../../../test/provision/behind-pooler.ts';
import { z } from 'zod';
import { describeJobs } from '../../../../test/jobs/describe-jobs.ts';
import { defineErrors } from '../../../errors/catalog.ts';
import { cancelJob } from '../manage/cancel.ts';
import { permanent, retryAfter } from '../declare/failure.ts';
import { job, type JobContext } from '../declare/job.ts';
import { Maintenance } from './maintenance.ts';
import { JobWorker } from './worker.ts';
import { retryJob } from '../manage/retry.ts';
import { attemptsOf, recordedSteps } from '../rows/store.ts';

const input = z.object({ n: z.int() });
const result = z.object({ doubled: z.int() });
const shopErrors = defineErrors('jobs_test', { sold_out: { status: 409, detail: 'The article is sold out.' } });

type Context = JobContext<{ n: number }>;
/** What the handlers do, test by test. */
let handle: (context: Context) => unknown = () => undefined;

const plain = job('plain', { input, concurrency: 3, run: async (context) => void (await handle(context)) });
const doubled = job('doubled', {
  input,
  result,
  retry: { attempts: 3, firstDelaySeconds: 10 },
  run: async (context) => (await handle(context)) as { doubled: number },
});
const hasty = job('hasty', {
  input,
  queue: 'hasty',
  timeoutMs: 20,
  concurrency: 1,
  retry: { attempts: 2 },
  run: (context) => handle(context) as never,
});
const renamed = job('renamed.now', {
  input,
  version: 2,
  aliases: ['renamed.before'],
  run: async (context) => void (await handle(context)),
});

const settled = (check: () => Promise<boolean> | boolean): Promise<unknown> => vi.waitUntil(check, { timeout: 300_000, interval: 20 });

describeJobs('running jobs', { jobs: [plain, doubled, hasty, renamed] }, (bench) => {
  const { clock, start, read, run } = bench;

  test('a job runs once with its input, and its result is stored', async () => {
    const seen: number[] = [];
    handle = ({ input: { n } }) => {
      seen.push(n);
      return { doubled: 2 * n };
    };
    const { id, status, created } = await start(doubled, { n: 21 });
    expect({ status, created }).toEqual({ status: 'queued', created: true });
    await run();
    await run();
    expect(seen).toEqual([21]);
    expect(await read(id)).toMatchObject({
      status: 'succeeded',
      result: '{"doubled":42}',
      attempts: 1,
      finished_at: clock.now(),
      claimed_until: null,
    });
  });

  test('a job of a rolled-back transaction does not exist', async () => {
    const rolledBack = bench.db.transaction(async (tx) => {
      await (await import('../start/start-job.ts')).startJob(tx, plain, { n: 1 });
      throw new Error('no');
    });
    await expect(rolledBack).rejects.toThrow('no');
    expect(await run()).toMatchObject({ succeeded: 0 });
  });

  test('a failed attempt is tried again after its pause, with jitter upwards only, and the history tells', async () => {
    let attempts = 0;
    handle = () => {
      if (++attempts < 3) throw shopErrors.sold_out();
      return { doubled: 1 };
    };
    const { id } = await start(doubled, { n: 1 });
    await run();
    const waiting = await read(id);
    expect(waiting).toMatchObject({ status: 'queued', attempts: 1, error_code: 'sold_out', error_message: 'The article is sold out.' });
    const pauseMs = waiting.run_at.getTime() - clock.now().getTime();
    expect(pauseMs).toBeGreaterThanOrEqual(10_000);
    expect(pauseMs).toBeLessThanOrEqual(11_000);
    expect(await run()).toMatchObject({ succeeded: 0 });
    clock.advance(11_000);
    await run();
    clock.advance(22_000);
    await run();
    expect(await read(id)).toMatchObject({ status: 'succeeded', attempts: 3, error_code: null });
    expect((await attemptsOf(bench.db, id)).map(({ attempt, outcome, error_code }) => [attempt, outcome, error_code])).toEqual([
      [1, 'failed', 'sold_out'],
      [2, 'failed', 'sold_out'],
    ]);
  });

  test('an exhausted job is failed, kept, and can be retried', async () => {
    handle = () => {
      throw new Error('secret detail');
    };
    const { id } = await start(doubled, { n: 1 });
    for (let n = 0; n < 3; n++) {
      await run();
      clock.advance(3_600_000);
    }
    expect(await read(id)).toMatchObject({ status: 'failed', attempts: 3, error_code: 'job_failed', error_message: 'The job failed.' });
    expect(bench.logged.some(({ fields }) => (fields['err'] as Error | undefined)?.message === 'secret detail')).toBe(true);
    handle = () => ({ doubled: 7 });
    await bench.db.transaction((tx) => retryJob(tx, id));
    await run();
    expect(await read(id)).toMatchObject({ status: 'succeeded', attempts: 1, error_code: null });
  });

  test('whatever a handler throws is a failure: text, nothing, an object without a prototype', async () => {
    for (const thrown of ['text', undefined, null, Object.create(null), 7]) {
      handle = () => {
        throw thrown;
      };
      const { id } = await start(plain, { n: 1 });
      await run();
      expect(await read(id)).toMatchObject({ status: 'queued', error_code: 'job_failed' });
      await bench.db.query('delete from jobs');
    }
  });

  test('permanent() ends the retries, retryAfter() moves the next attempt', async () => {
    handle = () => {
      throw permanent(shopErrors.sold_out());
    };
    const first = await start(doubled, { n: 1 });
    await run();
    expect(await read(first.id)).toMatchObject({ status: 'failed', attempts: 1, error_code: 'sold_out' });
    handle = () => {
      throw retryAfter(77);
    };
    const second = await start(doubled, { n: 1 });
    await run();
    expect((await read(second.id)).run_at).toEqual(new Date(clock.now().getTime() + 77_000));
  });

  test('a result that its schema forbids, and one of more than 256 KiB, fail permanently', async () => {
    handle = () => ({ doubled: 'no' });
    const wrong = await start(doubled, { n: 1 });
    await run();
    expect(await read(wrong.id)).toMatchObject({ status: 'failed', attempts: 1, error_code: 'result_invalid', result: null });
    handle = ({ step }) => step('large', () => 'x'.repeat(300_000));
    const large = await start(doubled, { n: 1 });
    await run();
    expect(await read(large.id)).toMatchObject({ status: 'failed', attempts: 1, error_code: 'payload_too_large' });
  });

  test('input that this version of the code no longer accepts fails permanently', async () => {
    const { id } = await start(plain, { n: 1 });
    await bench.db.query(`update jobs set input = '{"n":"one"}' where id = $1`, [id]);
    await run();
    expect(await read(id)).toMatchObject({ status: 'failed', attempts: 1, error_code: 'input_invalid' });
  });

  test('unknown names and higher versions are given back for a minute without counting an attempt; aliases are known', async () => {
    const seen: number[] = [];
    handle = ({ input: { n } }) => void seen.push(n);
    const ids = await Promise.all([1, 2, 3].map((n) => start(renamed, { n })));
    await bench.db.query(`update jobs set name = 'somebody.elses' where id = $1`, [ids[0]?.id]);
    await bench.db.query(`update jobs set version = 3 where id = $1`, [ids[1]?.id]);
    await bench.db.query(`update jobs set name = 'renamed.before', version = 1 where id = $1`, [ids[2]?.id]);
    await run();
    expect(seen).toEqual([3]);
    for (const { id } of ids.slice(0, 2))
      expect(await read(id)).toMatchObject({ status: 'queued', attempts: 0, run_at: new Date(clock.now().getTime() + 60_000) });
    await bench.db.query(`update jobs set name = 'renamed.now', version = 2`);
    clock.advance(60_000);
    await run();
    expect(seen.sort((a, b) => a - b)).toEqual([1, 2, 3]);
  });

  test('the last progress is stored however soon the job ends after it: by success, by failure, and with a commit', async () => {
    handle = async ({ progress }) => {
      for (let percent = 10; percent <= 50; percent += 10) await progress(percent, `${percent} done`);
      return { doubled: 1 };
    };
    const succeeded = await start(doubled, { n: 1 });
    await run();
    expect(await read(succeeded.id)).toMatchObject({ status: 'succeeded', progress: 100, progress_message: '50 done' });
    handle = async ({ progress }) => {
      await progress(10, 'begun');
      await progress(60, 'almost');
      throw new Error('no');
    };
    const failed = await start(doubled, { n: 1 });
    await run();
    expect(await read(failed.id)).toMatchObject({ status: 'queued', progress: 60, progress_message: 'almost' });
    let commits = 0;
    handle = async ({ progress, commit }) => {
      await progress(10, 'begun');
      await progress(70, 'saved');
      return commit(async () => {
        if (++commits === 1) throw new Error('rolled back');
        return { doubled: 1 };
      });
    };
    const committed = await start(doubled, { n: 1 });
    await run();
    expect(await read(committed.id)).toMatchObject({ status: 'queued', progress: 70, progress_message: 'saved' });
    clock.advance(3_600_000);
    await run();
    expect(await read(committed.id)).toMatchObject({ status: 'succeeded', progress: 100, progress_message: 'saved' });
  });

  test('a job that moved to another queue takes what waits in the old one along, delayed jobs too', async () => {
    handle = () => undefined;
    const now = await start(plain, { n: 1 });
    const later = await start(plain, { n: 2 }, { delaySeconds: 90 });
    const serial = await start(plain, { n: 3 }, { serialKey: 'k' });
    const unknown = await start(plain, { n: 4 });
    await bench.db.query(`update jobs set queue = 'before'`);
    await bench.db.query(`update jobs set name = 'another.app' where id = $1`, [unknown.id]);
    expect(await run()).toMatchObject({ succeeded: 2 });
    expect(await read(now.id)).toMatchObject({ status: 'succeeded', queue: 'default' });
    expect((await read(serial.id)).status).toBe('succeeded');
    expect(await read(later.id)).toMatchObject({ status: 'queued' });
    clock.advance(90_000);
    await run();
    expect((await read(later.id)).status).toBe('succeeded');
    expect(await read(unknown.id)).toMatchObject({ status: 'queued', queue: 'before' });
  });

  test('a due job that another transaction has locked waits for the next look: maintenance neither spins nor stops for it', async ({
    skip,
  }) => {
    if (bench.database.dialect === 'sqlite') skip('SQLite has one writer at a time');
    handle = () => undefined;
    const free = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const plainJob = await start(plain, { n: 1 }, { delaySeconds: 60 });
    const serial = await start(plain, { n: 2 }, { delaySeconds: 60, serialKey: 'k' });
    const other = await start(plain, { n: 3 }, { delaySeconds: 60, serialKey: 'other' });
    const holder = bench.db.transaction(async (tx) => {
      await tx.query('select id from jobs where id in ($1, $2) for update', [plainJob.id, serial.id]);
      locked.resolve();
      await free.promise;
    });
    await locked.promise;
    clock.advance(60_000);
    const maintenance = new Maintenance(bench.jobs, () => undefined);
    const next = await maintenance.round();
    const isReady = await bench.db.query('select is_ready from jobs where id = $1', [other.id]);
    free.resolve();
    await holder;
    expect(isReady).toEqual([{ is_ready: true }]);
    // Null, or a time to come: the loop would go round at once for a time that has passed.
    expect(next === null || next > clock.now()).toBe(true);
    expect(await run()).toMatchObject({ succeeded: 3 });
  });

  test('progress is stored, clamped, and becomes 100 with success', async () => {
    const seen: unknown[] = [];
    handle = async ({ id, progress }) => {
      await progress(140.4, 'half way');
      const { progress: percent, progress_message: message } = await read(id);
      seen.push(percent, message);
      await progress(3);
    };
    const { id } = await start(plain, { n: 1 });
    expect((await read(id)).progress).toBeNull();
    await run();
    expect(seen).toEqual([100, 'half way']);
    expect((await read(id)).progress).toBe(100);
  });

  test('commit: effects and success are one transaction', async () => {
    await bench.db.query('create table if not exists effects (job_id text primary key)');
    handle = async ({ id, commit }) =>
      commit(async (tx) => {
        await tx.query('insert into effects (job_id) values ($1)', [id]);
        return { doubled: 1 };
      });
    const { id } = await start(doubled, { n: 1 });
    await run();
    expect(await read(id)).toMatchObject({ status: 'succeeded', result: '{"doubled":1}' });
    expect(await bench.db.query('select job_id from effects where job_id = $1', [id])).toHaveLength(1);
  });

  test('commit: a cancelled job, a lost lease and a forbidden result roll the effects back', async () => {
    await bench.db.query('create table if not exists effects (job_id text primary key)');
    const within: ((id: string) => Promise<unknown>)[] = [
      (id) => bench.db.query(`update jobs set claim_token = 'another' where id = $1`, [id]),
      async () => undefined,
    ];
    for (const [index, meanwhile] of within.entries()) {
      handle = async ({ id, commit }) => {
        if (bench.database.dialect === 'postgres' || index === 1) {
          return commit(async (tx) => {
            await tx.query('insert into effects (job_id) values ($1)', [id]);
            await meanwhile(id);
            return index === 1 ? 'forbidden' : { doubled: 1 };
          });
        }
        await meanwhile(id);
        return commit(async (tx) => void (await tx.query('insert into effects (job_id) values ($1)', [id])));
      };
      const { id } = await start(doubled, { n: 1 });
      await run();
      expect(await bench.db.query('select job_id from effects where job_id = $1', [id])).toEqual([]);
      expect((await read(id)).status).toBe(index === 0 ? 'running' : 'failed');
      await bench.db.query('delete from jobs');
    }
  });

  test('no commit follows a cancel, the handler is told, and retry waits for the lease', async () => {
    const reached = Promise.withResolvers<void>();
    const told = Promise.withResolvers<unknown>();
    handle = async ({ signal }) => {
      reached.resolve();
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      told.resolve(signal.reason);
      // Goes on for a moment: retry must wait for it.
      await new Promise((resolve) => setTimeout(resolve, 50));
    };
    await bench.work();
    const { id } = await start(plain, { n: 1 });
    await reached.promise;
    await bench.db.transaction((tx) => cancelJob(tx, id));
    expect(await read(id)).toMatchObject({ status: 'cancelled' });
    await expect(bench.db.transaction((tx) => retryJob(tx, id))).rejects.toMatchObject({ code: 'job_still_running' });
    expect(await told.promise).toMatchObject({ name: 'AbortError' });
    await settled(async () => (await read(id)).claimed_until === null);
    expect(await attemptsOf(bench.db, id)).toMatchObject([{ outcome: 'cancelled' }]);
    await bench.db.transaction((tx) => retryJob(tx, id));
    await settled(async () => (await read(id)).status !== 'queued');
  });

  test('cancelling what has ended changes nothing', async () => {
    handle = () => undefined;
    const { id } = await start(plain, { n: 1 });
    await run();
    const before = await read(id);
    expect(await bench.db.transaction((tx) => cancelJob(tx, id))).toEqual(before);
    await expect(bench.db.transaction((tx) => retryJob(tx, id))).rejects.toMatchObject({ code: 'job_not_retryable' });
  });

  test('of a cancel and a success at once exactly one holds', async () => {
    for (let n = 0; n < 20; n++) {
      const gate = Promise.withResolvers<void>();
      handle = async ({ commit }) => commit(async () => gate.resolve());
      const { id } = await start(plain, { n });
      const running = run();
      await gate.promise;
      const cancelled = await bench.db.transaction((tx) => cancelJob(tx, id));
      await running;
      expect((await read(id)).status).toBe(cancelled.status);
    }
  });

  test('a handler that ignores its timeout loses its token and its slot; the next attempt comes', async () => {
    const release = Promise.withResolvers<void>();
    let late: unknown;
    handle = async ({ commit }) => {
      await release.promise;
      await commit(async () => undefined).catch((error: unknown) => (late = error));
    };
    const worker = new JobWorker(bench.jobs, { queues: ['hasty'] });
    const { id } = await start(hasty, { n: 1 });
    await worker.runOnce();
    expect(await read(id)).toMatchObject({ status: 'queued', attempts: 1, error_code: 'timed_out' });
    expect(await attemptsOf(bench.db, id)).toMatchObject([{ outcome: 'timed_out' }]);
    expect(await worker.stuck).toContain('All 1 slots of the queue "hasty"');
    release.resolve();
    await settled(() => late !== undefined);
    expect(late).toMatchObject({ name: 'ClaimLost' });
    await worker.stop();
  });

  test('a worker that stops lets jobs finish, then gives the rest back without counting the attempt', async () => {
    const reached = Promise.withResolvers<void>();
    handle = async ({ input: { n }, signal }) => {
      if (n === 1) return;
      reached.resolve();
      await new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    };
    const worker = await bench.work();
    const [quick, slow] = [await start(plain, { n: 1 }), await start(plain, { n: 2 })];
    await reached.promise;
    await worker.stop();
    expect((await read(quick.id)).status).toBe('succeeded');
    expect(await read(slow.id)).toMatchObject({ status: 'queued', attempts: 0, worker: null });
    handle = () => undefined;
    await run();
    expect((await read(slow.id)).status).toBe('succeeded');
  });

  test('a job whose worker is lost runs again, and fails when that was its last attempt', async () => {
    handle = () => ({ doubled: 1 });
    const { id } = await start(doubled, { n: 1 });
    const lose = async (attempts: number): Promise<void> => {
      await bench.db.query(
        `update jobs set status = 'running', is_ready = false, attempts = $2, claim_token = 'dead', worker = 'dead', claimed_until = $3 where id = $1`,
        [id, attempts, clock.now()],
      );
      await bench.expireLeases();
    };
    await lose(2);
    await run();
    expect(await read(id)).toMatchObject({ status: 'succeeded', attempts: 3 });
    const second = await start(doubled, { n: 2 });
    await bench.db.query(
      `update jobs set status = 'running', is_ready = false, attempts = 3, claim_token = 'dead', worker = 'dead', claimed_until = $2 where id = $1`,
      [second.id, clock.now()],
    );
    await bench.expireLeases();
    await run();
    expect(await read(second.id)).toMatchObject({ status: 'failed', error_code: 'worker_lost', attempts: 3 });
    expect(await attemptsOf(bench.db, second.id)).toMatchObject([{ outcome: 'worker_lost', worker: 'dead', attempt: 3 }]);
  });

  test('a run whose lease another worker took over changes nothing', async () => {
    handle = async ({ id }) => void (await bench.db.query(`update jobs set claim_token = 'another' where id = $1`, [id]));
    const { id } = await start(plain, { n: 1 });
    expect(await run()).toMatchObject({ succeeded: 0, lost: 1 });
    expect((await read(id)).status).toBe('running');
  });

  test('steps: a retry does not repeat what is recorded; step.commit does its work exactly once', async () => {
    await bench.db.query('create table if not exists step_effects (job_id text)');
    const calls: string[] = [];
    let attempts = 0;
    handle = async ({ id, step }) => {
      const rendered = await step('render', () => {
        calls.push('render');
        return { at: new Date(0), size: 3 };
      });
      calls.push(JSON.stringify(rendered));
      await step.commit('book', async (tx) => void (await tx.query('insert into step_effects (job_id) values ($1)', [id])));
      if (++attempts < 3) throw new Error('later');
    };
    const { id } = await start(plain, { n: 1 });
    for (let n = 0; n < 3; n++) {
      await run();
      clock.advance(3_600_000);
    }
    // Also the first attempt gets what JSON makes of it: every attempt sees the same.
    expect(calls).toEqual(['render', ...Array<string>(3).fill('{"at":"1970-01-01T00:00:00.000Z","size":3}')]);
    expect(await bench.db.query('select job_id from step_effects where job_id = $1', [id])).toHaveLength(1);
    expect((await recordedSteps(bench.db, id)).map(({ name, attempt }) => [name, attempt])).toEqual([
      ['book', 1],
      ['render', 1],
    ]);
    expect((await read(id)).status).toBe('succeeded');
  });

  test('steps: two of one name in one run are an error; a lost claim records nothing', async () => {
    handle = async ({ step }) => {
      await step('same', () => 1);
      await step('same', () => 2);
    };
    const first = await start(plain, { n: 1 });
    await run();
    expect(await read(first.id)).toMatchObject({ status: 'failed', error_code: 'step_repeated' });
    await bench.db.query('create table if not exists step_effects (job_id text)');
    handle = async ({ id, step }) => {
      await bench.db.query(`update jobs set claim_token = 'another' where id = $1`, [id]);
      await step('late', () => 1).catch(() => undefined);
      await step
        .commit('later', async (tx) => void (await tx.query('insert into step_effects (job_id) values ($1)', [id])))
        .catch(() => undefined);
    };
    const second = await start(plain, { n: 1 });
    await run();
    expect(await recordedSteps(bench.db, second.id)).toEqual([]);
    expect(await bench.db.query('select job_id from step_effects where job_id = $1', [second.id])).toEqual([]);
  });

  test('leases are renewed while a job runs, so that no other worker takes it', async () => {
    const gate = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    handle = async () => {
      reached.resolve();
      await gate.promise;
    };
    const worker = new JobWorker({ ...bench.jobs, settings: { ...bench.jobs.settings, leaseMs: 1000 } });
    const { id } = await start(plain, { n: 1 });
    const running = worker.runOnce();
    await reached.promise;
    const { claimed_until: first } = await read(id);
    clock.advance(500);
    await settled(async () => ((await read(id)).claimed_until?.getTime() ?? 0) > (first?.getTime() ?? Infinity));
    gate.resolve();
    await running;
    expect((await read(id)).status).toBe('succeeded');
    await worker.stop();
  });

  test('after a blocked event loop an expired run is told before it can save anything', async () => {
    let late: unknown;
    let aborted = false;
    handle = async ({ signal, commit }) => {
      const until = performance.now() + 1100;
      while (performance.now() < until);
      await commit(async () => undefined).catch((error: unknown) => (late = error));
      aborted = signal.aborted;
    };
    const worker = new JobWorker({ ...bench.jobs, settings: { ...bench.jobs.settings, leaseMs: 1000 } });
    const { id } = await start(plain, { n: 1 });
    await worker.runOnce();
    expect(late).toMatchObject({ name: 'ClaimLost' });
    expect(aborted).toBe(true);
    expect((await read(id)).status).toBe('running');
    await worker.stop();
  });

  test('a job is started within moments of its commit, also by a worker that hardly polls', async (context) => {
    context.skip(bench.db.dialect === 'postgres' && isBehindPooler(), NOTIFICATIONS_ARE_LOST);
    const started = Promise.withResolvers<void>();
    handle = () => started.resolve();
    await bench.work({ pollIntervalMs: 3_600_000 });
    await start(plain, { n: 1 });
    await started.promise;
  });

  test('two workers run a hundred jobs once each', async () => {
    const seen: number[] = [];
    handle = ({ input: { n } }) => void seen.push(n);
    const { startJobs } = await import('../start/start-job.ts');
    await bench.db.transaction((tx) =>
      startJobs(
        tx,
        plain,
        Array.from({ length: 100 }, (_, n) => ({ n })),
      ),
    );
    await Promise.all([run(), run()]);
    await run();
    expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, n) => n));
  });
});
