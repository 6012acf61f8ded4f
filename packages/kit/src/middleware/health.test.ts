import { expect, test } from 'vitest';
import { NotReady, runHealthChecks } from './health.ts';

const context = { databases: {} };

test('everything that works is ok', async () => {
  expect(await runHealthChecks({ disk: () => true, cache: async () => {} }, context, 1000)).toEqual({
    status: 'ok',
    checks: { disk: { status: 'ok' }, cache: { status: 'ok' } },
  });
});

test('one failing check makes the whole unavailable and is named; its reason goes to the log only', async () => {
  const seen: unknown[] = [];
  const report = await runHealthChecks(
    { disk: () => true, queue: () => Promise.reject(new Error('password wrong for admin@10.0.0.7')) },
    context,
    1000,
    (name, error) => seen.push([name, String(error)]),
  );
  expect(report).toEqual({ status: 'unavailable', checks: { disk: { status: 'ok' }, queue: { status: 'failed' } } });
  expect(JSON.stringify(report)).not.toContain('admin');
  expect(seen).toEqual([['queue', 'Error: password wrong for admin@10.0.0.7']]);
});

test('a check that never answers is a timeout at the deadline, and its signal is aborted', async () => {
  let signal: AbortSignal | undefined;
  const report = await runHealthChecks(
    {
      stuck: (given) => {
        signal = given.signal;
        return new Promise(() => {});
      },
      quick: () => 1,
    },
    context,
    20,
  );
  expect(report).toEqual({ status: 'unavailable', checks: { stuck: { status: 'timeout' }, quick: { status: 'ok' } } });
  expect(signal?.aborted).toBe(true);
});

test('a sentence that everybody may read is in the report, and what it is about in the log', async () => {
  const seen: unknown[] = [];
  const check = () => Promise.reject(new NotReady('The queue is full.', 'queue 7 of 10.0.0.7'));
  const report = await runHealthChecks({ queue: check }, context, 1000, (_, error) => seen.push((error as Error).message));
  expect(report.checks).toEqual({ queue: { status: 'failed', detail: 'The queue is full.' } });
  expect(seen).toEqual(['queue 7 of 10.0.0.7']);
});
