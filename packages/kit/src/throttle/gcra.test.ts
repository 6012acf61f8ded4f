import fc from 'fast-check';
import { expect, test } from 'vitest';
import { admit, describe, gcra } from './gcra.ts';
import { parseRate, type Rate } from './rate.ts';

const START_MS = Date.UTC(2026, 0, 1);

/** Offers one request at each of these times; answers the times at which one was admitted. */
function admitted(rate: Rate, offersMs: readonly number[]): number[] {
  let tat: number | undefined;
  return offersMs.filter((offerMs) => {
    const next = admit(tat, gcra(rate, new Date(START_MS + offerMs)));
    if (next !== null) tat = next;
    return next !== null;
  });
}

const rates = fc.record({ count: fc.integer({ min: 1, max: 50 }), periodMs: fc.integer({ min: 1, max: 120 }).map((s) => s * 1000) });
const offers = fc.array(fc.integer({ min: 0, max: 3000 }), { maxLength: 300 }).map((gaps) => {
  let at = 0;
  return gaps.map((gap) => (at += gap));
});

test('in any span at most the count plus what the span regains is admitted', () => {
  fc.assert(
    fc.property(rates, offers, (rate, offersMs) => {
      const times = admitted(rate, offersMs);
      const intervalMs = rate.periodMs / rate.count;
      for (let from = 0; from < times.length; from += 1) {
        for (let to = from; to < times.length; to += 1) {
          const spanMs = (times[to] ?? 0) - (times[from] ?? 0);
          if (to - from + 1 > rate.count + Math.floor(spanMs / intervalMs)) return false;
        }
      }
      return true;
    }),
    { numRuns: 300 },
  );
});

test('a request is refused only while the budget is used up', () => {
  fc.assert(
    fc.property(rates, offers, (rate, offersMs) => {
      const times = new Set(admitted(rate, [...new Set(offersMs)]));
      const intervalMs = Math.ceil((rate.periodMs * 1000) / rate.count) / 1000;
      let used = 0;
      let last = 0;
      return [...new Set(offersMs)].every((offerMs) => {
        used = Math.max(0, used - (offerMs - last) / intervalMs);
        last = offerMs;
        if (times.has(offerMs)) used += 1;
        return times.has(offerMs) || used + 1 > rate.count - 1e-6;
      });
    }),
  );
});

test('no second burst waits behind the edge of a window', () => {
  const rate = parseRate('60/min');
  const burst = (atMs: number): number[] => Array.from({ length: 60 }, () => atMs);
  // A fixed window would admit 120 requests within these two milliseconds around its edge.
  expect(admitted(rate, [...burst(59_999), ...burst(60_001)])).toHaveLength(60);
  expect(admitted(rate, [...burst(0), ...burst(1000), ...burst(2500)])).toHaveLength(62);
  expect(admitted(rate, [...burst(0), ...burst(60_000)])).toHaveLength(120);
});

test.each(['1/s', '3/s', '7/min', '999/hour', '1000000/s', '700000/s', '100/366d'])('a burst on %s admits exactly the count', (text) => {
  const rate = parseRate(text);
  const cell = gcra(rate, new Date(START_MS));
  let tat: number | undefined;
  let count = 0;
  for (let next = admit(tat, cell); next !== null; next = admit(tat, cell)) {
    tat = next;
    count += 1;
  }
  expect(count).toBe(rate.count);
});

test('a refused request that waits as told is admitted, and not a millisecond earlier', () => {
  const rate = parseRate('7/min');
  let tat: number | undefined;
  for (let i = 0; i < 7; i += 1) tat = admit(tat, gcra(rate, new Date(START_MS))) ?? tat;
  const full = gcra(rate, new Date(START_MS));
  expect(admit(tat, full)).toBeNull();
  const { retryAfterMs } = describe(false, tat ?? 0, rate, full);
  expect(admit(tat, gcra(rate, new Date(START_MS + retryAfterMs)))).not.toBeNull();
  expect(admit(tat, gcra(rate, new Date(START_MS + retryAfterMs - 1)))).toBeNull();
});

test('the answer counts down the budget and up to its return', () => {
  const rate = parseRate('10/min');
  const now = new Date(START_MS);
  const first = admit(undefined, gcra(rate, now));
  expect(describe(true, first ?? 0, rate, gcra(rate, now))).toEqual({
    allowed: true,
    limit: 10,
    remaining: 9,
    resetMs: 6000,
    nextMs: 6000,
    retryAfterMs: 0,
  });
  const later = gcra(rate, new Date(START_MS + 1500), 4);
  const second = admit(first ?? 0, later);
  expect(describe(true, second ?? 0, rate, later)).toMatchObject({ remaining: 5, resetMs: 28_500, nextMs: 4500 });
});

test('a budget written under a clock that was set back a year does not lock its caller out', () => {
  const rate = parseRate('10/min');
  const wrong = admit(undefined, gcra(rate, new Date(START_MS + 365 * 86_400_000)));
  expect(admit(wrong ?? 0, gcra(rate, new Date(START_MS)))).not.toBeNull();
  // Skew between two processes is no reason to forget what was used.
  let tat: number | undefined;
  for (let i = 0; i < 10; i += 1) tat = admit(tat, gcra(rate, new Date(START_MS + 30_000))) ?? tat;
  expect(admit(tat, gcra(rate, new Date(START_MS)))).toBeNull();
});

test.each([0, -1, 1.5, 11, Number.NaN])('a cost of %d against a budget of 10 is a programming error', (cost) => {
  expect(() => gcra(parseRate('10/min'), new Date(START_MS), cost)).toThrow(RangeError);
});
