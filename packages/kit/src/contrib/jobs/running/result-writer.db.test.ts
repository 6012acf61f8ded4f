import { afterEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { describeJobs } from '../../../../test/jobs/describe-jobs.ts';
import { lockRows } from '../../../../test/lock-rows.ts';
import { rejectUpdates } from '../../../../test/reject-updates.ts';
import { defineErrors } from '../../../errors/catalog.ts';
import { permanent, retryAfter } from '../declare/failure.ts';
import { job } from '../declare/job.ts';
import { attemptsOf } from '../rows/store.ts';
import { claimReady } from './claim-store.ts';
import type { RunEnd } from './job-run.ts';
import { ResultWriter } from './result-writer.ts';

const errors = defineErrors('jobs_result_test', { culprit: { status: 409, detail: 'culprit' } });
const input = z.object({ n: z.int() });
const CULPRIT = 4;
let thrown: () => unknown = () => undefined;

const returning = job('returning', { input, result: z.string(), run: ({ input: { n } }) => (n === CULPRIT ? 'culprit' : 'fine') });
const throwing = job('throwing', {
  input,
  run: ({ input: { n } }) => {
    if (n === CULPRIT) throw thrown();
    throw new Error('tried again');
  },
});

/** Ends when its gate opens. */
const gates: Promise<void>[] = [];
const gated = job('gated', {
  input,
  async run() {
    await gates.at(-1);
  },
});
const FAILURE = { code: 'job_failed', message: 'failed', isPermanent: false, retryAfterSeconds: null, cause: undefined };
const WAIT = { timeout: 300_000 };

describeJobs('results', { jobs: [returning, throwing, gated] }, (bench) => {
  const { clock, start, read, run } = bench;
  const cleanUps: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0)) await cleanUp();
  });
  const rejected = async (condition: string): Promise<void> => void cleanUps.push(await rejectUpdates(bench.db, 'jobs', condition));
  const startEight = async (definition: typeof returning): Promise<string[]> => {
    const ids: string[] = [];
    for (let n = 0; n < 8; n++) ids.push((await start(definition, { n })).id);
    return ids;
  };

  test('retryAfter() with a timestamp says what it takes, and the job is tried again as usual beside the others', async () => {
    thrown = () => retryAfter(Date.now());
    expect(thrown).toThrow(/retryAfter\(\) takes seconds from 0 to 2592000 \(30 days\), got \d+/);
    expect(() => retryAfter(Infinity)).toThrow('got Infinity');
    expect(() => retryAfter(Number.NaN)).toThrow('got NaN');
    const ids = await startEight(throwing);
    expect(await run()).toMatchObject({ retrying: 8, failed: 0 });
    for (const id of ids) {
      const { status, run_at: runAt } = await read(id);
      expect(status).toBe('queued');
      expect(runAt.getTime()).toBeLessThan(clock.now().getTime() + 3_700_000);
    }
  });

  test('a delay beyond the limit that an error of another version of the package carries is ignored', async () => {
    thrown = () => Object.assign(new Error('later'), { [Symbol.for('kit.jobs.retryAfter')]: Date.now() });
    const ids = await startEight(throwing);
    expect(await run()).toMatchObject({ retrying: 8 });
    expect((await read(ids[CULPRIT] as string)).run_at.getTime()).toBeLessThan(clock.now().getTime() + 3_700_000);
  });

  test('a success that cannot be stored fails its job, and the other results of its batch are stored', async () => {
    await rejected(`new.result = '"culprit"'`);
    const ids = await startEight(returning);
    expect(await run()).toMatchObject({ succeeded: 7, failed: 1, lost: 0 });
    for (const [n, id] of ids.entries()) expect((await read(id)).status).toBe(n === CULPRIT ? 'failed' : 'succeeded');
    const culprit = ids[CULPRIT] as string;
    expect(await read(culprit)).toMatchObject({ error_code: 'result_not_storable', result: null, finished_at: clock.now() });
    expect(await attemptsOf(bench.db, culprit)).toMatchObject([{ attempt: 1, outcome: 'failed', error_code: 'result_not_storable' }]);
    expect(bench.logged).toContainEqual(
      expect.objectContaining({ level: 'error', message: 'the database rejected the result of a job; the job fails' }),
    );
  });

  test('a failure that cannot be stored does the same, whether it is the last attempt or not', async () => {
    await rejected(`new.error_code = 'culprit'`);
    for (const error of [errors.culprit(), permanent(errors.culprit())]) {
      thrown = () => error;
      const ids = await startEight(throwing);
      expect(await run()).toMatchObject({ retrying: 7, failed: 1 });
      expect(await read(ids[CULPRIT] as string)).toMatchObject({ status: 'failed', error_code: 'result_not_storable' });
      await bench.db.query('delete from jobs');
    }
  });

  test('a job of which nothing can be stored is given up: its lease expires, and the worker goes on', async () => {
    await rejected(`new.name = 'returning' and old.status = 'running' and new.status in ('succeeded', 'failed')`);
    const { id } = await start(returning, { n: 1 });
    thrown = () => undefined;
    const other = await start(throwing, { n: 1 });
    expect(await run()).toMatchObject({ lost: 1, retrying: 1 });
    expect((await read(other.id)).status).toBe('queued');
    for (const cleanUp of cleanUps.splice(0)) await cleanUp();
    await bench.expireLeases();
    await run();
    expect((await read(id)).status).toBe('succeeded');
  });

  test('a job that another transaction has locked holds up neither other results nor claims, and its result is stored when it is free', async ({
    skip,
  }) => {
    if (bench.db.dialect === 'sqlite') skip('SQLite has one writer at a time');
    const gate = Promise.withResolvers<void>();
    gates.push(gate.promise);
    const slow = await start(gated, { n: 0 });
    const worker = await bench.work({ concurrency: 4 });
    await vi.waitUntil(async () => (await read(slow.id)).status === 'running', WAIT);
    const release = await lockRows(bench.db, 'jobs', [slow.id]);
    gate.resolve();
    // More than a worker claims while results wait to be stored.
    const ids: string[] = [];
    for (let n = 0; n < 60; n++) ids.push((await start(returning, { n: 10 + n })).id);
    await vi.waitUntil(async () => (await statusesOf(ids)).every((status) => status === 'succeeded'), WAIT);
    expect((await read(slow.id)).status).toBe('running');
    await release();
    await vi.waitUntil(async () => (await read(slow.id)).status === 'succeeded', WAIT);
    expect(worker.summary).toMatchObject({ succeeded: 61, lost: 0 });
  });

  test('every kind of result waits for its locked row beside the results that follow', async ({ skip }) => {
    if (bench.db.dialect === 'sqlite') skip('SQLite has one writer at a time');
    const kinds: RunEnd[] = [
      { kind: 'succeeded', result: '"fine"' },
      { kind: 'failed', outcome: 'failed', failure: { ...FAILURE, isPermanent: true } },
      { kind: 'failed', outcome: 'failed', failure: FAILURE },
      { kind: 'unknown' },
      { kind: 'released' },
    ];
    const ends = [...kinds, ...kinds];
    for (const n of ends.keys()) await start(returning, { n: 10 + n });
    const limits = { queue: 'default', now: clock.now(), leaseMs: 60_000, max: 16, worker: 'a worker' };
    const claims = await claimReady(bench.db, limits, { lastTurn: '' });
    const ids = claims.map(({ id }) => id);
    const release = await lockRows(bench.db, 'jobs', ids.slice(0, kinds.length));
    const stored: string[] = [];
    const writer = new ResultWriter(bench.jobs, 'a worker', {
      stored: (each) => void stored.push(...each.map(({ id }) => id)),
      ready: () => undefined,
      waiting: () => undefined,
    });
    const at = clock.now();
    for (const [n, claim] of claims.entries()) writer.add({ claim, startedAt: at, endedAt: at, end: ends[n] as RunEnd });
    await vi.waitUntil(() => stored.length === kinds.length, WAIT);
    expect(stored.toSorted()).toEqual(ids.slice(kinds.length).toSorted());
    const written = ['succeeded', 'failed', 'queued', 'queued', 'queued'];
    expect(await statusesOf(ids)).toEqual([...kinds.map(() => 'running'), ...written]);
    await release();
    await writer.flush();
    expect(await statusesOf(ids)).toEqual([...written, ...written]);
    expect(writer.summary).toEqual({ succeeded: 2, retrying: 2, failed: 2, released: 4, lost: 0 });
    for (const [n, id] of ids.entries()) expect((await read(id)).attempts).toBe(n % kinds.length < 3 ? 1 : 0);
  });

  test('a stop releases the claims that nobody has locked, and does not wait for the others', async ({ skip }) => {
    if (bench.db.dialect === 'sqlite') skip('SQLite has one writer at a time');
    gates.push(new Promise(() => undefined));
    const [locked, free] = [await start(gated, { n: 0 }), await start(gated, { n: 0 })];
    const worker = await bench.work({ concurrency: 4 });
    await vi.waitUntil(async () => (await statusesOf([locked.id, free.id])).every((status) => status === 'running'), WAIT);
    const release = await lockRows(bench.db, 'jobs', [locked.id]);
    await worker.stop();
    expect(await statusesOf([locked.id, free.id])).toEqual(['running', 'queued']);
    await release();
  });

  async function statusesOf(ids: readonly string[]): Promise<string[]> {
    const rows = await bench.db.query<{ id: string; status: string }>('select id, status from jobs');
    const byId = new Map(rows.map(({ id, status }) => [id, status]));
    return ids.map((id) => byId.get(id) ?? 'missing');
  }
});
