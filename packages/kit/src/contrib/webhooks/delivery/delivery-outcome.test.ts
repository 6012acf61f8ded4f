import { describe, expect, test } from 'vitest';
import { DEFAULT_DISABLE_AFTER_MS, decideOutcome } from './delivery-outcome.ts';
import type { AttemptResult, EndpointHealth, Outcome, OutcomeOptions } from './delivery-outcome.ts';
import { DEFAULT_SCHEDULE } from '../endpoints/retry-schedule.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const now = new Date('2026-03-04T05:06:07.000Z');
const healthy: EndpointHealth = { failingSince: null, consecutiveFailures: 0 };
const options: OutcomeOptions = { schedule: DEFAULT_SCHEDULE, random: null, disableAfterMs: DEFAULT_DISABLE_AFTER_MS };
const response = (status: number, retryAfter: string | null = null): AttemptResult => ({ kind: 'response', status, retryAfter });
const failure = (
  reason: 'timeout' | 'connection' | 'tls' | 'blocked_address' | 'payload',
  status: number | null = null,
): AttemptResult => ({
  kind: 'failure',
  reason,
  error: `it was ${reason}`,
  status,
});
const decide = (result: AttemptResult, attemptsBefore = 0, health = healthy, changes: Partial<OutcomeOptions> = {}): Outcome =>
  decideOutcome(attemptsBefore, result, health, now, { ...options, ...changes });
const ago = (ms: number): EndpointHealth => ({ failingSince: new Date(now.getTime() - ms), consecutiveFailures: 9 });

test.each([200, 201, 202, 204, 226, 299])('a %d response succeeds permanently and clears the endpoint’s failures', (status) => {
  expect(decide(response(status), 3, ago(DAY_MS))).toEqual({
    delivery: {
      status: 'succeeded',
      attempts: 4,
      nextAttemptAt: null,
      deliveredAt: now,
      lastStatusCode: status,
      lastError: null,
      failureReason: null,
    },
    health: { failingSince: null, consecutiveFailures: 0 },
    disable: null,
  });
});

describe('with retries left', () => {
  test.each([100, 199, 300, 301, 302, 304, 307, 308, 400, 401, 404, 429, 500, 503, 599])('a %d response is tried again', (status) => {
    const outcome = decide(response(status));
    expect(outcome.delivery).toMatchObject({
      status: 'pending',
      attempts: 1,
      failureReason: 'http_status',
      lastStatusCode: status,
      deliveredAt: null,
    });
    expect(outcome.delivery.nextAttemptAt).toEqual(new Date(now.getTime() + 5000));
    expect(outcome.health).toEqual({ failingSince: now, consecutiveFailures: 1 });
    expect(outcome.disable).toBeNull();
  });

  test.each(['timeout', 'connection', 'tls'] as const)('a %s failure is tried again', (reason) => {
    const outcome = decide(failure(reason), 1, ago(DAY_MS));
    expect(outcome.delivery).toMatchObject({
      status: 'pending',
      attempts: 2,
      failureReason: reason,
      lastError: `it was ${reason}`,
      lastStatusCode: null,
    });
    expect(outcome.delivery.nextAttemptAt).toEqual(new Date(now.getTime() + 300_000));
    expect(outcome.health).toEqual({ failingSince: ago(DAY_MS).failingSince, consecutiveFailures: 10 });
  });

  test('a response that breaks off after its head is a failure, whatever its status said', () => {
    expect(decide(failure('timeout', 200)).delivery).toMatchObject({ status: 'pending', failureReason: 'timeout', lastStatusCode: 200 });
  });

  test('Retry-After postpones the retry, capped at 24 hours', () => {
    expect(decide(response(429, '60')).delivery.nextAttemptAt).toEqual(new Date(now.getTime() + 60_000));
    expect(decide(response(503, 'Wed, 04 Mar 2026 06:06:07 GMT')).delivery.nextAttemptAt).toEqual(new Date(now.getTime() + 3_600_000));
    expect(decide(response(503, '9999999')).delivery.nextAttemptAt).toEqual(new Date(now.getTime() + DAY_MS));
    expect(decide(response(503, '1')).delivery.nextAttemptAt).toEqual(new Date(now.getTime() + 5000));
  });

  test('the delays follow the schedule of the endpoint and its jitter', () => {
    const changes = { schedule: [10, 20], random: () => 0.5 };
    expect(decide(response(500), 0, healthy, changes).delivery.nextAttemptAt).toEqual(new Date(now.getTime() + 10_500));
    expect(decide(response(500), 1, healthy, changes).delivery.nextAttemptAt).toEqual(new Date(now.getTime() + 21_000));
    expect(decide(response(500), 2, healthy, changes).delivery.status).toBe('failed');
  });
});

test.each([
  ['http_status', response(500)],
  ['timeout', failure('timeout')],
  ['connection', failure('connection')],
  ['tls', failure('tls')],
] as const)('with the schedule exhausted a delivery fails with its reason: %s', (reason, result) => {
  const outcome = decide(result, 7);
  expect(outcome.delivery).toMatchObject({ status: 'failed', attempts: 8, nextAttemptAt: null, failureReason: reason });
  expect(outcome.health).toEqual({ failingSince: now, consecutiveFailures: 1 });
});

test('the eighth attempt is the last of the default schedule', () => {
  expect(decide(response(500), 6).delivery.status).toBe('pending');
  expect(decide(response(500), 7).delivery.status).toBe('failed');
});

test.each(['blocked_address', 'payload'] as const)(
  '%s fails at once, counts the attempt, and is not held against the endpoint',
  (reason) => {
    expect(decide(failure(reason), 0, ago(9 * DAY_MS))).toEqual({
      delivery: {
        status: 'failed',
        attempts: 1,
        nextAttemptAt: null,
        deliveredAt: null,
        lastStatusCode: null,
        lastError: `it was ${reason}`,
        failureReason: reason,
      },
      health: null,
      disable: null,
    });
  },
);

test.each(['audience_changed', 'endpoint_disabled', 'secret_unavailable'] as const)(
  '%s fails at once without an attempt and is not held against the endpoint',
  (reason) => {
    const outcome = decide({ kind: 'refused', reason, error: 'why' }, 2, ago(9 * DAY_MS));
    expect(outcome.delivery).toMatchObject({ status: 'failed', attempts: 2, nextAttemptAt: null, failureReason: reason, lastError: 'why' });
    expect(outcome.health).toBeNull();
    expect(outcome.disable).toBeNull();
  },
);

describe('disabling the endpoint', () => {
  test('410 is a reason at once; the delivery waits like every other of the endpoint, and fails with them if it is disabled', () => {
    const outcome = decide(response(410));
    expect(outcome.disable).toBe('gone');
    expect(outcome.delivery).toMatchObject({ status: 'pending', failureReason: 'http_status', lastStatusCode: 410, attempts: 1 });
  });

  test('five days of continuous failure disable, a moment less does not', () => {
    expect(decide(response(500), 0, ago(5 * DAY_MS - 1))).toMatchObject({ disable: null, delivery: { status: 'pending' } });
    expect(decide(response(500), 0, ago(5 * DAY_MS))).toMatchObject({
      disable: 'continuous_failure',
      delivery: { status: 'pending', failureReason: 'http_status', lastStatusCode: 500 },
    });
    expect(decide(failure('connection'), 0, ago(6 * DAY_MS)).disable).toBe('continuous_failure');
  });

  test('the last attempt of a delivery keeps its own reason when it also disables the endpoint', () => {
    expect(decide(response(500), 7, ago(5 * DAY_MS))).toMatchObject({
      disable: 'continuous_failure',
      delivery: { status: 'failed', failureReason: 'http_status' },
    });
  });

  test('the first failure never disables, unless the limit is zero', () => {
    expect(decide(response(500)).disable).toBeNull();
    expect(decide(response(500), 0, healthy, { disableAfterMs: 0 }).disable).toBe('continuous_failure');
  });

  test('a success in between resets the count', () => {
    const { health } = decide(response(200), 0, ago(4 * DAY_MS));
    expect(decide(response(500), 0, health ?? ago(0)).health).toEqual({ failingSince: now, consecutiveFailures: 1 });
  });

  test('the limit can be set', () => {
    expect(decide(response(500), 0, ago(1000), { disableAfterMs: 1000 }).disable).toBe('continuous_failure');
  });
});
