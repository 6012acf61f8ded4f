import fc from 'fast-check';
import { expect, test } from 'vitest';
import { plainJson } from '../../db/values/canonical-json.ts';
import { contentHash, GENESIS, linkHash, type EntryContent } from './chain.ts';
import { masked } from './mask.ts';

const entry: EntryContent = {
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
};

test('every field of an entry is part of its hash', () => {
  const whole = contentHash(entry);
  for (const name of Object.keys(entry) as (keyof EntryContent)[]) {
    const changed = { ...entry, [name]: name === 'at' ? new Date('2030-01-01T00:00:00.001Z') : 'changed' };
    expect([name, contentHash(changed)]).not.toEqual([name, whole]);
  }
});

test('a link depends on the entry before it', () => {
  const content = contentHash(entry);
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
