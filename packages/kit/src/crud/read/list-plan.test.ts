import { expect, test } from 'vitest';
import { type ListPlan, ListPlans } from './list-plan.ts';
import { pageOptions } from '../declare/page-options.ts';

const byCursor = pageOptions();
const byOffset = pageOptions({ style: 'offset' });
const planOf = (isRepeatable: boolean) => ({ list: { isRepeatable } }) as unknown as ListPlan;

test('parameters that differ in the cursor have one plan; where pages have offsets, a cursor is told apart, so that it is refused', () => {
  const plans = new ListPlans();
  expect(plans.keyOf({ cursor: 'a', limit: '5' }, byCursor, '')).toBe(plans.keyOf({ limit: '5' }, byCursor, ''));
  expect(plans.keyOf({ cursor: 'a', limit: '5' }, byOffset, '')).not.toBe(plans.keyOf({ limit: '5' }, byOffset, ''));
});

test('no other parameters, and no callers who see other columns, share a plan', () => {
  const plans = new ListPlans();
  const keys = [
    plans.keyOf({}, byCursor, ''),
    plans.keyOf({ a: 'b' }, byCursor, ''),
    plans.keyOf({ a: 'b' }, byCursor, '10/'),
    plans.keyOf({ a: 'b' }, byCursor, '1u/'),
    plans.keyOf({ ab: '' }, byCursor, ''),
    plans.keyOf({ a: '', b: '' }, byCursor, ''),
    plans.keyOf({ a: '1:b', c: 'd' }, byCursor, ''),
    plans.keyOf({ a: '1:b1:c1:d' }, byCursor, ''),
    plans.keyOf({ a: '1', b: '1:c1:d' }, byCursor, ''),
  ];
  expect(new Set(keys).size).toBe(keys.length);
});

test('repeated and long parameters, and lists that code or a permission decides about, are read every time', () => {
  const plans = new ListPlans();
  expect(plans.keyOf({ a: ['b', 'c'] }, byCursor, '')).toBeUndefined();
  expect(plans.keyOf({ cursor: ['b', 'c'] }, byCursor, '')).toBeUndefined();
  expect(plans.keyOf({ a: 'b'.repeat(300) }, byCursor, '')).toBeUndefined();
  plans.keep('once', planOf(false));
  plans.keep(undefined, planOf(true));
  expect([plans.get('once'), plans.get(undefined)]).toEqual([undefined, undefined]);
});

test('however many lists are asked for, 500 plans are kept at most', () => {
  const plans = new ListPlans();
  const plan = planOf(true);
  for (let index = 0; index <= 1_000; index += 1) plans.keep(String(index), plan);
  const kept = Array.from({ length: 1_001 }, (_, index) => plans.get(String(index))).filter((each) => each !== undefined);
  expect(plans.get('1000')).toBe(plan);
  expect(kept.length).toBeLessThanOrEqual(500);
});
