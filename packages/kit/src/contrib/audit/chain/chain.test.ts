import fc from 'fast-check';
import { expect, test } from 'vitest';
import { plainJson } from '../../../db/values/canonical-json.ts';
import { contentHash, ERASABLE, GENESIS, isAsRecorded, linkHash, type EntryContent, valuesHash } from './chain.ts';
import { rangesOf } from './erased-places.ts';
import { masked } from '../record/mask.ts';

const first: EntryContent = {
  id: '01890000-0000-7000-8000-000000000001',
  at: new Date('2030-01-01T00:00:00.000Z'),
  actor_id: 'u1',
  actor_name: 'ada',
  actor_scheme: 'session',
  credential_id: 's1',
  action: 'order.updated',
  target_type: 'order',
  target_id: 'o1',
  before: { total: '1.00' },
  after: { total: '2.00' },
  metadata: {},
  request_id: 'r1',
  tenant_id: '',
  salt: null,
  values_hash: null,
};
const salted = { ...first, tenant_id: 't1', salt: '7d444840-9dc0-41d1-b245-5ffdce74fad2' };
const second: EntryContent = { ...salted, values_hash: valuesHash(salted) };

test.each([
  ['first', first],
  ['second', second],
])('every field of an entry of the %s format is part of its hashes', (_format, entry) => {
  const recorded = { ...entry, content_hash: contentHash(entry) };
  expect(isAsRecorded(recorded)).toBe(true);
  for (const name of Object.keys(entry) as (keyof EntryContent)[]) {
    const changed = { ...recorded, [name]: name === 'at' ? new Date('2030-01-01T00:00:00.001Z') : 'changed' };
    expect([name, isAsRecorded(changed)]).toEqual([name, false]);
  }
});

test('values can be erased all together, and only in the second format', () => {
  const recorded = { ...second, content_hash: contentHash(second) };
  const blank = Object.fromEntries(ERASABLE.map((name) => [name, null]));
  expect(isAsRecorded({ ...recorded, ...blank, salt: null })).toBe(true);
  // A salt without values.
  expect(isAsRecorded({ ...recorded, ...blank })).toBe(false);
  for (const name of ERASABLE) {
    const inPart = { ...recorded, ...blank, salt: null, [name]: second[name] };
    expect([name, isAsRecorded(inPart)]).toEqual([name, false]);
  }
  expect(isAsRecorded({ ...first, content_hash: contentHash(first), ...blank })).toBe(false);
});

test('places are named as ranges', () => {
  expect(rangesOf([1n, 2n, 3n, 5n, 9n, 10n])).toEqual(['1-3', '5', '9-10']);
  expect(rangesOf([])).toEqual([]);
});

test('a link depends on the entry before it', () => {
  const content = contentHash(second);
  expect(linkHash(GENESIS, content)).not.toBe(linkHash(linkHash(GENESIS, content), content));
});

test('members with sensitive names are masked at any depth, also those a model marked', () => {
  const value = {
    name: 'ada',
    password: 'x',
    nested: [{ api_key: 'kit_1', shoe_size: 42, deeper: { authorization: 'Bearer x', note: 'fine' } }],
    token: null,
  };
  expect(masked(value, new Set(['shoe_size']))).toEqual({
    name: 'ada',
    password: '[masked]',
    nested: [{ api_key: '[masked]', shoe_size: '[masked]', deeper: { authorization: '[masked]', note: 'fine' } }],
    token: null,
  });
});

test('a member named __proto__ stays a plain member', () => {
  const value = JSON.parse('{"__proto__": {"password": "x"}}') as unknown;
  expect(JSON.stringify(masked(value, new Set()))).toBe('{"__proto__":{"password":"[masked]"}}');
});

test('a masked value is what JSON makes of it', () => {
  const odd = fc.oneof(
    fc.constantFrom<unknown>(
      undefined,
      Number.NaN,
      -0,
      Number.POSITIVE_INFINITY,
      () => 1,
      Symbol('s'),
      new String('boxed'),
      new Map([[1, 2]]),
    ),
    fc.date({ noInvalidDate: false }),
    fc.bigInt(),
    fc.constant({ toJSON: () => ({ made: [1n] }) }),
    fc.constant(Object.assign(Object.create({ inherited: 1 }) as object, { own: 2 })),
    fc.constant([1, , undefined, null]), // oxlint-disable-line no-sparse-arrays -- JSON writes a hole as null
  );
  const value = fc.letrec((tie) => ({
    any: fc.oneof({ maxDepth: 4 }, fc.jsonValue({ maxDepth: 1 }), odd, fc.array(tie('any')), fc.dictionary(fc.string(), tie('any'))),
  })).any;
  const json = (item: unknown) => JSON.stringify(item, (_, each: unknown) => (typeof each === 'bigint' ? `${each}` : each));
  fc.assert(
    fc.property(value, (item) => {
      expect(masked([item], new Set())).toEqual(masked(JSON.parse(json([item])), new Set()));
    }),
  );
  let deep: unknown = { last: new Date(0) };
  for (let level = 0; level < 500; level += 1) deep = { in: deep };
  expect(masked(deep, new Set())).toEqual(plainJson(deep));
});

test('a value that contains itself is refused', () => {
  const value: Record<string, unknown> = {};
  value['again'] = { value };
  expect(() => masked(value, new Set())).toThrow(/circular/i);
});
