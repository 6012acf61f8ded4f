import { expect, test } from 'vitest';
import { fieldCodes } from '../../errors/field-codes.ts';
import { jsonChecker } from './json-checker.ts';

const check = jsonChecker({
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 2, maxLength: 4 },
    state: { type: 'string', enum: ['active', 'revoked'] },
    kind: { const: 'order' },
    count: { type: 'integer', minimum: 1, maximum: 9, multipleOf: 3 },
    code: { type: 'string', pattern: '^[a-z]+$' },
    tags: { type: 'array', minItems: 1, maxItems: 2, uniqueItems: true },
  },
  required: ['id'],
  additionalProperties: false,
});

test.each([
  [{ name: 7 }, 'invalid_type'],
  [{ name: 'x' }, 'too_small'],
  [{ name: 'xxxxx' }, 'too_big'],
  [{ state: 'expired' }, 'invalid_value'],
  [{ kind: 'invoice' }, 'invalid_value'],
  [{ count: 0 }, 'too_small'],
  [{ count: 12 }, 'too_big'],
  [{ count: 4 }, 'not_multiple_of'],
  [{ code: 'A1' }, 'invalid_format'],
  [{ tags: [] }, 'too_small'],
  [{ tags: [1, 2, 3] }, 'too_big'],
  [{ tags: [1, 1] }, 'duplicate'],
  [{ colour: 1 }, 'unknown_field'],
  [{}, 'required'],
])('the faults of %o have the code %s, which is documented', (value, code) => {
  const codes = check(value).map((issue) => issue.code ?? '');
  expect(codes).toContain(code);
  expect(codes.filter((each) => fieldCodes[each] === undefined)).toEqual([]);
});

test('a value that is not in a list comes with the list', () => {
  expect(check({ id: 1, state: 'expired' }).find(({ code }) => code === 'invalid_value')?.message).toContain('"active", "revoked"');
  expect(check({ id: 1, kind: 'invoice' }).find(({ code }) => code === 'invalid_value')?.message).toContain('"order"');
});

test.each([
  [{ name: 7 }, 'must be a string'],
  [{ name: 'x' }, 'must have at least 2 characters'],
  [{ name: 'xxxxx' }, 'must have at most 4 characters'],
  [{ count: 1.5 }, 'must be an integer'],
  [{ count: 0 }, 'must be at least 1'],
  [{ count: 12 }, 'must be at most 9'],
  [{ count: 4 }, 'must be a multiple of 3'],
  [{ tags: [] }, 'must have at least 1 value'],
  [{ tags: 'a' }, 'must be a list'],
])('what is wrong with %o is a sentence that a form can show', (value, sentence) => {
  expect(check({ id: 1, ...value }).map(({ message }) => message)).toContain(sentence);
});
