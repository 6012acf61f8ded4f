import { expect, test } from 'vitest';
import { FailedAttempts } from './failed-attempts.ts';

const now = new Date('2030-01-01T00:00:00.000Z');
const later = (ms: number) => new Date(now.getTime() + ms);

test('an address is refused after as many failures as the rate holds, and admitted again after an interval', () => {
  const attempts = new FailedAttempts({ count: 3, periodMs: 60_000 });
  for (let index = 0; index < 3; index += 1) {
    expect(attempts.refusal('192.0.2.1', now)).toBeNull();
    attempts.record('192.0.2.1', now);
  }
  const refusal = attempts.refusal('192.0.2.1', now);
  expect(refusal).toMatchObject({ code: 'throttled', status: 429, headers: { 'retry-after': '20' } });
  expect(attempts.refusal('192.0.2.2', now)).toBeNull();
  expect(attempts.refusal('192.0.2.1', later(19_999))).not.toBeNull();
  expect(attempts.refusal('192.0.2.1', later(20_000))).toBeNull();
});

test('the addresses of one IPv6 network share a budget', () => {
  const attempts = new FailedAttempts({ count: 1, periodMs: 60_000 });
  attempts.record('2001:db8:0:1::7', now);
  expect(attempts.refusal('2001:db8:0:1:ffff::1', now)).not.toBeNull();
  expect(attempts.refusal('2001:db8:0:2::7', now)).toBeNull();
});

test('memory stays bounded whatever addresses fail', () => {
  const attempts = new FailedAttempts({ count: 1, periodMs: 60_000 });
  for (let index = 0; index < 20_000; index += 1) attempts.record(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`, now);
  let remembered = 0;
  for (let index = 0; index < 20_000; index += 1) {
    if (attempts.refusal(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`, now) !== null) remembered += 1;
  }
  expect(remembered).toBe(10_000);
});
