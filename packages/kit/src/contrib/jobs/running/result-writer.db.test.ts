import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { describeJobs } from '../../../../test/jobs/describe-jobs.ts';
import { rejectUpdates } from '../../../../test/reject-updates.ts';
import { defineErrors } from '../../../errors/catalog.ts';
import { permanent, retryAfter } from '../failure.ts';
import { job } from '../job.ts';
import { attemptsOf } from '../store.ts';

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

describeJobs('results that the database rejects', { jobs: [returning, throwing] }, (bench) => {
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
});
