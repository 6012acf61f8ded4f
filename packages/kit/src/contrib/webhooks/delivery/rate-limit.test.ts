import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseRate } from '../../../throttle/rate.ts';
import { grant } from './rate-limit.ts';

const START = new Date('2026-03-01T12:00:00.000Z');
const at = (ms: number): Date => new Date(START.getTime() + ms);

test('a tenth of the budget may be used at once, the rest is spread over the period', () => {
  const rate = parseRate('100/min');
  const first = grant(rate, null, START, 50);
  expect(first.count).toBe(10);
  const second = grant(rate, first.state, first.nextAt, 50);
  expect(second.count).toBe(1);
  expect(first.nextAt.getTime() - START.getTime()).toBeLessThan(1000);
});

test('one a second is one a second', () => {
  const rate = parseRate('1/s');
  const first = grant(rate, null, START, 5);
  expect([first.count, first.nextAt]).toEqual([1, at(1000)]);
  expect(grant(rate, first.state, at(999), 5).count).toBe(0);
  expect(grant(rate, first.state, at(1000), 5).count).toBe(1);
});

test('in no period are there more requests than the rate says, and a worker that waits until told gets one', () => {
  const rates = fc.record({ count: fc.integer({ min: 1, max: 50 }), periodMs: fc.constantFrom(1000, 60_000) });
  const steps = fc.array(fc.record({ waitMs: fc.integer({ min: 0, max: 5000 }), wanted: fc.integer({ min: 1, max: 20 }) }), {
    maxLength: 60,
  });
  fc.assert(
    fc.property(rates, steps, (rate, all) => {
      let state: Date | null = null;
      let now = START.getTime();
      const sent: number[] = [];
      for (const { waitMs, wanted } of all) {
        now += waitMs;
        const granted = grant(rate, state, new Date(now), wanted);
        for (let n = 0; n < granted.count; n++) sent.push(now);
        if (granted.count > 0) state = granted.state;
        expect(grant(rate, state, granted.nextAt, 1).count).toBe(1);
      }
      for (const from of sent)
        expect(sent.filter((time) => time >= from && time < from + rate.periodMs).length).toBeLessThanOrEqual(rate.count);
    }),
  );
});
