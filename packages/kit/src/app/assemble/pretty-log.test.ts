import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { prettyLine } from './pretty-log.ts';

const plain = (record: object) => stripVTControlCharacters(prettyLine(JSON.stringify(record)));
const time = new Date(2026, 0, 2, 3, 4, 5, 6).getTime();

test('time, level and message come first, then the other members; process id and host do not appear', () => {
  const line = plain({ level: 30, time, pid: 1, hostname: 'h', request_id: 'a-1', status: 200, msg: 'GET /v1/orders 200' });
  expect(line).toBe('03:04:05.006 INFO  GET /v1/orders 200  request_id=a-1 status=200\n');
});

test('the stack of an error is printed on lines of its own', () => {
  expect(plain({ level: 50, time, msg: 'failed', err: { message: 'no', stack: 'Error: no\n    at here' } })).toBe(
    '03:04:05.006 ERROR failed\nError: no\n    at here\n',
  );
});

test('text of a client cannot move the cursor or start another line', () => {
  const line = prettyLine(JSON.stringify({ level: 30, time, msg: 'GET /\u001b[2J\nfake', user_agent: '\u009b31m\r' }));
  expect(line.slice(0, -1)).not.toMatch(/\p{Cc}\[2J|\u009b|\r|\n/u);
});

test('what is not JSON is printed as it came', () => {
  expect(prettyLine('plain text\n')).toBe('plain text\n');
});
