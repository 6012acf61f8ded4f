import { expect, test } from 'vitest';
import { z } from 'zod';
import { describeJobs } from '../../../test/jobs/describe-jobs.ts';
import { payloadOf } from './rows/masked-payload.ts';
import { job } from './declare/job.ts';
import { startJobs } from './start/start-job.ts';
import { attemptsOf, recordedSteps } from './rows/store.ts';

const seen: unknown[] = [];
const run = ({ input }: { readonly input: unknown }): void => void seen.push(input);
const dated = job('dated', { input: z.object({ at: z.date() }), run });
const coerced = job('coerced', { input: z.object({ at: z.coerce.date() }), run });
const mapped = job('mapped', { input: z.map(z.string(), z.number()), run });
const anything = job('anything', { input: z.any(), run });
const nothing = job('nothing', { input: z.void(), run });
const optional = job('optional', { input: z.object({ n: z.int() }).optional(), run });

let work: () => unknown = () => undefined;
let runs = 0;
const stepping = job('stepping', {
  input: z.object({}),
  async run({ step }) {
    await step('only', () => {
      runs += 1;
      return work();
    });
  },
});
const committing = job('committing', {
  input: z.object({}),
  async run({ step }) {
    await step.commit('only', async () => {
      runs += 1;
      return work();
    });
  },
});
const returning = job('returning', { input: z.object({}), result: z.any(), run: () => work() });

const jobs = [dated, coerced, mapped, anything, nothing, optional, stepping, committing, returning];
describeJobs('what jobs store', { jobs }, (bench) => {
  const { start, read } = bench;

  test('an input that would not pass when the job runs is rejected when it is started, and nothing is written', async () => {
    const at = new Date('2026-01-01');
    await expect(start(dated, { at })).rejects.toMatchObject({
      code: 'input_invalid',
      message: expect.stringMatching(/^The input of dated does not match its schema: at: .*z\.coerce\.date\(\)\.$/),
    });
    await expect(start(mapped, new Map([['a', 1]]))).rejects.toMatchObject({
      code: 'input_invalid',
      message: 'The input of mapped cannot be stored. It is a Map, which JSON cannot store.',
    });
    await expect(start(anything, { list: [1, Number.NaN] })).rejects.toThrow('list.1 is NaN');
    await expect(bench.db.transaction((tx) => startJobs(tx, dated, [{ at }]))).rejects.toThrow('The input[0] of dated');
    expect(await bench.db.query('select id from jobs')).toEqual([]);
  });

  test('an input that JSON has another form of runs when its schema accepts that form', async () => {
    seen.length = 0;
    const at = new Date('2026-01-01T00:00:00.000Z');
    await start(coerced, { at });
    expect(await bench.run()).toMatchObject({ succeeded: 1 });
    expect(seen).toEqual([{ at }]);
  });

  test('a job without input runs with undefined, and is shown with null', async () => {
    for (const started of [() => start(nothing, undefined), () => start(optional, undefined)]) {
      seen.length = 0;
      const { id } = await started();
      expect(await bench.run()).toMatchObject({ succeeded: 1 });
      expect(seen).toEqual([undefined]);
      expect(payloadOf(await read(id), 'input', bench.jobs.settings.catalog)).toBeNull();
    }
  });

  test('unique keys compare inputs by value, whatever the order of their members', async () => {
    const options = { uniqueKey: 'one' };
    const first = await start(anything, { a: 1, b: { c: [1, 2], d: 'x' } }, options);
    expect(await start(anything, { b: { d: 'x', c: [1, 2] }, a: 1 }, options)).toMatchObject({ id: first.id, created: false });
    for (const other of [{ a: 1, b: { c: [2, 1], d: 'x' } }, { a: 1 }, null, undefined])
      await expect(start(anything, other, options)).rejects.toMatchObject({ code: 'unique_key_reused' });
  });

  test.each([
    ['a Map', () => new Map()],
    ['NaN', () => Number.NaN],
    ['an Error', () => new Error('lost')],
    ['a bigint', () => 1n],
    ['undefined in a list', () => [undefined]],
  ])('a step that returns %s fails its job with a sentence, and is not run again', async (_what, value) => {
    work = value;
    for (const definition of [stepping, committing]) {
      runs = 0;
      const { id } = await start(definition, {});
      expect(await bench.run()).toMatchObject({ failed: 1, retrying: 0 });
      bench.clock.advance(3_600_000);
      await bench.run();
      expect(runs).toBe(1);
      expect(await read(id)).toMatchObject({ status: 'failed', attempts: 1, error_code: 'result_not_storable' });
      expect(await attemptsOf(bench.db, id)).toHaveLength(1);
      expect(await recordedSteps(bench.db, id)).toEqual([]);
      const errors = bench.logged.flatMap(({ fields }) => (fields['err'] instanceof Error ? [fields['err'].message] : []));
      expect(errors).toContainEqual(expect.stringContaining('The result of the step "only" cannot be stored: '));
      bench.logged.length = 0;
    }
  });

  test('a result that JSON would change fails its job', async () => {
    work = () => ({ total: Number.NaN });
    const { id } = await start(returning, {});
    await bench.run();
    expect(await read(id)).toMatchObject({ status: 'failed', attempts: 1, error_code: 'result_not_storable', result: null });
  });
});
