import { expect, test } from 'vitest';
import { people } from '../../../test/people.ts';
import { couldBeKeyId, couldBeOwnerId } from './ids.ts';

const uuid = '01890000-0000-7000-8000-00000000000a';

test.each([
  ['uuid', [uuid, uuid.toUpperCase()], ['', '7', 'ada', `${uuid}0`, `{${uuid}}`, uuid.replaceAll('-', '')]],
  ['integer', ['7', '007', '-1', '2147483647'], ['', 'ada', '1.5', '1e3', '2147483648', ' 7', uuid]],
  ['bigint', ['7', '9223372036854775807', '-9223372036854775808'], ['', '9223372036854775808', '92233720368547758070', 'x']],
  ['text', ['', 'ada', '7'], []],
] as const)('what can be the %s of an owner', (idType, ids, others) => {
  const table = { ...people.table, idType };
  expect(ids.filter((id) => !couldBeOwnerId(id, table))).toEqual([]);
  expect(others.filter((id) => couldBeOwnerId(id, table))).toEqual([]);
});

test('a key’s id is a UUID in either case', () => {
  expect([uuid, uuid.toUpperCase(), '7', ''].map(couldBeKeyId)).toEqual([true, true, false, false]);
});
