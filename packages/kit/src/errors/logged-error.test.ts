import { expect, test } from 'vitest';
import { loggedError } from './logged-error.ts';

test('the row a database quotes in its error is not logged, the broken rule is', () => {
  const driver = Object.assign(new Error('duplicate key value violates unique constraint "users_email_key"'), {
    code: '23505',
    constraint: 'users_email_key',
    table: 'users',
    detail: 'Key (email)=(canary@example.com) already exists.',
    where: 'canary',
    parameters: ['canary'],
  });
  const record = loggedError(new Error('request failed', { cause: driver }));
  expect(record.cause).toMatchObject({ code: '23505', constraint: 'users_email_key', table: 'users' });
  expect(JSON.stringify(record)).not.toContain('canary');
});

test('a cause that leads back to itself ends', () => {
  const error = new Error('round');
  error.cause = error;
  expect(JSON.stringify(loggedError(error)).length).toBeLessThan(100_000);
});

test('every error of an aggregate is logged; a thrown value that is no error says so', () => {
  expect(loggedError(new AggregateError([new Error('a'), new TypeError('b')], 'both')).errors?.map((inner) => inner.message)).toEqual([
    'a',
    'b',
  ]);
  expect(loggedError({ secret: 'canary' })).toEqual({ type: 'object', message: 'thrown value is not an Error' });
});

test('a value that cannot be read is written down as such', () => {
  const { proxy, revoke } = Proxy.revocable(new Error('x'), {});
  revoke();
  const unreadable = { type: 'unreadable', message: 'the thrown value cannot be read' };
  expect(loggedError(proxy)).toEqual(unreadable);
  expect(loggedError(new Error('outer', { cause: proxy }))).toMatchObject({ message: 'outer', cause: unreadable });
});
