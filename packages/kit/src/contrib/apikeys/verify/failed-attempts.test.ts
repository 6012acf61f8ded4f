import { describe, expect, test } from 'vitest';
import { type Attempt, FailedAttempts } from './failed-attempts.ts';

const now = new Date('2030-01-01T00:00:00.000Z');
const later = (ms: number) => new Date(now.getTime() + ms);
const throttled = expect.objectContaining({ code: 'throttled', status: 429 });

function fail(attempts: FailedAttempts, address: string, at = now): void {
  (attempts.begin(address, at) as Attempt).failed();
}

test('an address is refused after as many failures as the rate holds, and admitted again after an interval', () => {
  const attempts = new FailedAttempts({ count: 3, periodMs: 60_000 });
  for (let index = 0; index < 3; index += 1) fail(attempts, '192.0.2.1');
  expect(() => attempts.begin('192.0.2.1', now)).toThrow(expect.objectContaining({ code: 'throttled', headers: { 'retry-after': '20' } }));
  expect(() => fail(attempts, '192.0.2.2')).not.toThrow();
  expect(() => attempts.begin('192.0.2.1', later(19_999))).toThrow(throttled);
  expect(() => attempts.begin('192.0.2.1', later(20_000))).not.toThrow();
});

test('successes cost nothing, however many', () => {
  const attempts = new FailedAttempts({ count: 2, periodMs: 60_000 });
  for (let index = 0; index < 100; index += 1) (attempts.begin('192.0.2.1', now) as Attempt).succeeded();
  expect(() => fail(attempts, '192.0.2.1')).not.toThrow();
});

describe('attempts in parallel', () => {
  /** Starts `count` attempts at once; `outcome` ends each that was admitted, one after the other. */
  async function race(attempts: FailedAttempts, count: number, outcome: (index: number) => 'succeeded' | 'failed') {
    let admitted = 0;
    let refused = 0;
    await Promise.all(
      Array.from({ length: count }, async () => {
        try {
          const attempt = await attempts.begin('192.0.2.1', now);
          const index = admitted;
          admitted += 1;
          await new Promise((resolve) => setImmediate(resolve));
          attempt[outcome(index)]();
        } catch {
          refused += 1;
        }
      }),
    );
    return { admitted, refused };
  }

  test('of 200 that fail, as many pass as the rate holds', async () => {
    expect(await race(new FailedAttempts({ count: 5, periodMs: 60_000 }), 200, () => 'failed')).toEqual({ admitted: 5, refused: 195 });
  });

  test('of 200 that succeed, none is refused', async () => {
    expect(await race(new FailedAttempts({ count: 5, periodMs: 60_000 }), 200, () => 'succeeded')).toEqual({ admitted: 200, refused: 0 });
  });

  test('what fails among them counts, and only that', async () => {
    const outcome = await race(new FailedAttempts({ count: 5, periodMs: 60_000 }), 100, (index) =>
      index % 10 === 9 ? 'failed' : 'succeeded',
    );
    expect(outcome).toEqual({ admitted: 50, refused: 50 });
  });
});

test('the addresses of one IPv6 network share a budget', () => {
  const attempts = new FailedAttempts({ count: 1, periodMs: 60_000 });
  fail(attempts, '2001:db8:0:1::7');
  expect(() => attempts.begin('2001:db8:0:1:ffff::1', now)).toThrow(throttled);
  expect(() => attempts.begin('2001:db8:0:2::7', now)).not.toThrow();
});

test('memory stays bounded whatever addresses fail', () => {
  const attempts = new FailedAttempts({ count: 1, periodMs: 60_000 });
  const address = (index: number) => `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`;
  for (let index = 0; index < 20_000; index += 1) fail(attempts, address(index));
  let remembered = 0;
  for (let index = 20_000 - 1; index >= 10_000; index -= 1) {
    try {
      void attempts.begin(address(index), now);
    } catch {
      remembered += 1;
    }
  }
  expect(remembered).toBe(10_000);
});
