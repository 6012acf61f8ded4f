import { expect, test } from 'vitest';
import { t } from '../declare/column.ts';
import { model } from '../declare/model.ts';
import { migration } from '../migrations/migration.ts';
import { createTable } from '../migrations/operation.ts';
import { planMigrations } from '../migrations/plan.ts';
import { backfill } from './backfill.ts';
import { overBudget } from './pressure.ts';
import { progressOf, rateAfter } from './progress.ts';

const people = model('people', { id: t.int().pk(), name: t.text().nullable() });
const run = (): Promise<void> => Promise.resolve();
const initial = migration('0001_initial', [createTable('people', people.columns)]);
const named = (name: string) => backfill(name, { model: people, run });

test.each([
  ['a name without a number', () => named('full_name'), 'Back-fill "full_name": names are four digits, an underscore and snake_case'],
  ['a batch of no rows', () => backfill('0002_name', { model: people, batch: 0, run }), 'batch is 0; use an integer from 1 to 100000'],
  ['an unknown option', () => backfill('0002_name', { model: people, run, size: 5 } as never), 'unknown option "size"'],
  ['a missing function', () => backfill('0002_name', { model: people } as never), 'run is missing; use a function'],
  ['a condition with an unknown column', () => backfill('0002_name', { model: people, where: { nam: null } as never, run }), 'nam'],
])('%s is rejected where it is declared', (_name, declare, sentence) => {
  expect(declare).toThrow(sentence);
});

test.each([
  ['listed in another order', [initial], ['0003_b', '0002_a'], 'back-fill 0002_a must sort after 0003_b'],
  ['with the number of a migration', [initial], ['0001_a'], 'back-fill 0001_a has the number of a migration'],
  [
    'required and not listed',
    [initial, migration('0003_x', [], { backfills: ['0002_b'] })],
    ['0002_a'],
    'Migration shop/0003_x requires the back-fill "0002_b", which its module does not list.',
  ],
  [
    'required by an earlier migration',
    [initial, migration('0002_x', [], { backfills: ['0003_a'] })],
    ['0003_a'],
    'Migration shop/0002_x requires the back-fill 0003_a, which comes after it.',
  ],
])('a back-fill %s stops every command that reads migrations', (_name, migrations, names, sentence) => {
  expect(() => planMigrations([{ name: 'shop', migrations, backfills: names.map(named) }])).toThrow(sentence);
});

test('a replica or a transaction that waits longer than the budget stops it, with a reason', () => {
  const budget = { replicaLagMsMax: 5000, lockWaitMsMax: 1000 };
  expect(overBudget(5000, 1000, budget)).toBeNull();
  expect(overBudget(5001, 0, budget)).toBe('a replica is 5.0 s behind');
  expect(overBudget(12_345, 2000, budget)).toBe('a replica is 12.3 s behind');
  expect(overBudget(0, 1200, budget)).toBe('a transaction has been waiting 1.2 s for a lock');
});

test('the rate follows the last batches, and the time left follows the rate', () => {
  expect(rateAfter(0, 1000, 500)).toBe(2000);
  expect(rateAfter(2000, 1000, 1000)).toBe(1800);
  const stored = {
    state: 'running' as const,
    position: '[1]',
    rowsDone: 2500,
    rowsTotal: 10_000,
    rowsPerSecond: 500,
    waitsFor: null,
    startedAt: new Date(0),
    updatedAt: new Date(60_000),
    finishedAt: null,
  };
  expect(progressOf(stored, new Date(61_000))).toEqual({
    state: 'running',
    rowsDone: 2500,
    rowsTotal: 10_000,
    share: 0.25,
    rowsPerSecond: 500,
    secondsLeft: 15,
    waitsFor: null,
  });
  expect(progressOf({ ...stored, waitsFor: 'paused' }, new Date(61_000))).toMatchObject({ state: 'waiting', rowsPerSecond: null });
  expect(progressOf(stored, new Date(121_000))).toMatchObject({ state: 'stopped', secondsLeft: null });
  expect(progressOf({ ...stored, rowsTotal: 2000 }, new Date(61_000))).toMatchObject({ rowsTotal: 2500, share: 1 });
});
