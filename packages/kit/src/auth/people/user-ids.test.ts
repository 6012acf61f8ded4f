import { expect, test } from 'vitest';
import { people } from '../../../test/people.ts';
import { isUuid } from '../../db/values/uuid.ts';
import { sameId } from './same-id.ts';
import { couldBeUserId } from './user-table.ts';

const uuid = '01890000-0000-7000-8000-00000000000a';

test.each([
  ['uuid', [uuid, uuid.toUpperCase()], ['', '7', 'ada', `${uuid}0`, `{${uuid}}`, uuid.replaceAll('-', '')]],
  ['integer', ['7', '007', '-1', '2147483647'], ['', 'ada', '1.5', '1e3', '2147483648', ' 7', uuid]],
  ['bigint', ['7', '9223372036854775807', '-9223372036854775808'], ['', '9223372036854775808', '92233720368547758070', 'x']],
  ['text', ['', 'ada', '7'], []],
] as const)('what can be the %s of a user', (idType, ids, others) => {
  const table = { ...people.table, idType };
  expect(ids.filter((id) => !couldBeUserId(id, table))).toEqual([]);
  expect(others.filter((id) => couldBeUserId(id, table))).toEqual([]);
});

test('a UUID is one in either case', () => {
  expect([uuid, uuid.toUpperCase(), '7', ''].map(isUuid)).toEqual([true, true, false, false]);
});

test.each([
  ['7', 7, true],
  [7n, '7', true],
  [7, 7n, true],
  [uuid, uuid.toUpperCase(), true],
  ['ada', 'ada', true],
  ['ada', 'Ada', false],
  ['7', 8, false],
  ['', '', false],
  [null, null, false],
  [undefined, undefined, false],
  [{}, {}, false],
])('ids compare by value: %o and %o', (a, b, same) => {
  expect(sameId(a, b)).toBe(same);
});
