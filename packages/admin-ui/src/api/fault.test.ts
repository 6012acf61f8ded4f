import { expect, test } from 'vitest';
import { ApiFault, explain, isSessionLost, isUnsettled, readFault, titleOf } from './fault.ts';

const fault = (status: number, code: string, more: object = {}) => new ApiFault({ status, code, detail: 'The detail.', ...more });

test.each([
  [fault(0, 'unreachable'), 'Server not reachable', 'The detail.'],
  [fault(401, 'invalid_credentials'), 'Login failed', 'The detail.'],
  [fault(403, 'csrf_failed'), 'Session out of date', 'The session of this page is out of date. Load the page again.'],
  [fault(403, 'role_required'), 'Not allowed', 'The detail.'],
  [fault(404, 'record_not_found'), 'Not found', 'This record does not exist or was deleted.'],
  [fault(409, 'conflict'), 'Not possible now', 'The detail.'],
  [fault(412, 'precondition_failed'), 'Record changed', 'The detail.'],
  [fault(0, 'no_answer'), 'No answer', 'The detail.'],
  [fault(422, 'validation_error'), 'Check the values', 'The detail.'],
  [fault(429, 'throttled', { retryAfterSeconds: 1 }), 'Too many requests', 'Too many requests. Try again in 1 second.'],
  [fault(429, 'throttled', { retryAfterSeconds: 30 }), 'Too many requests', 'Too many requests. Try again in 30 seconds.'],
  [
    fault(500, 'internal_error', { requestId: 'r-1' }),
    'Server error',
    'The detail. Try again. The cause is in the server log under request r-1.',
  ],
])('a fault is a title in plain words and a sentence that says what to do: $status $code', (given, title, text) => {
  expect([titleOf(given), explain(given)]).toEqual([title, text]);
});

test('the answer of a proxy, which is no problem document, is a fault too', async () => {
  const read = await readFault(new Response('<h1>Bad Gateway</h1>', { status: 502 }));
  expect(read).toMatchObject({ status: 502, code: 'unexpected_answer' });
  expect(explain(read)).toBe('The server returned status 502. Try again.');
});

test('whether a change was made is unknown without an answer, and known with one', () => {
  const unknown = [
    fault(0, 'no_answer'),
    fault(0, 'unreachable'),
    fault(502, 'unexpected_answer'),
    fault(504, 'x'),
    fault(409, 'request_in_progress'),
  ];
  expect(unknown.map(isUnsettled)).toEqual(unknown.map(() => true));
  const known = [
    fault(0, 'page_error'),
    fault(409, 'conflict'),
    fault(412, 'x'),
    fault(500, 'internal_error'),
    fault(503, 'database_busy'),
  ];
  expect(known.map(isUnsettled)).toEqual(known.map(() => false));
});

test('a session that ended is told from a wrong password', () => {
  expect([fault(401, 'not_authenticated'), fault(401, 'invalid_credentials'), fault(403, 'x')].map(isSessionLost)).toEqual([
    true,
    false,
    false,
  ]);
});
