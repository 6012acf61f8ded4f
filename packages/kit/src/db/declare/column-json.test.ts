import { expect, test } from 'vitest';
import { jsonChecker } from './json-checker.ts';
import { columnJsonSchema } from './column-json.ts';
import { t } from '../index.ts';

test.each([
  [t.decimal(10, 2), '1.234', 'must be a decimal number such as "12.50", with at most 8 digits before and 2 after the point'],
  [t.decimal(3, 3), '1.5', 'must be a decimal number such as "0.50", with at most 0 digits before and 3 after the point'],
  [t.decimal(1, 0), '12', 'must be a decimal number such as "1", with at most 1 digits before and 0 after the point'],
  [t.bigint(), '1e9', 'must be an integer as a string, such as "42"'],
  [t.bytes(), '%', 'must be base64 with padding, such as "aGVsbG8="'],
  [t.text({ pattern: '^x$' }), 'y', 'must match pattern "^x$"'],
])('a value of another form is told in words what to send: %#', (column, value, message) => {
  const check = jsonChecker(columnJsonSchema(column.settings, 'input'));
  expect(check(value)).toEqual([{ message, code: 'invalid_format', path: [] }]);
});

test('the example of a message is valid', () => {
  for (const column of [t.decimal(10, 2), t.decimal(3, 3), t.decimal(2, 1), t.decimal(1, 0), t.bigint(), t.bytes()]) {
    const check = jsonChecker(columnJsonSchema(column.settings, 'input'));
    const example = /such as ("[^"]*")/.exec(check('?')[0]?.message ?? '')?.[1] ?? '';
    expect(check(JSON.parse(example))).toEqual([]);
  }
});
