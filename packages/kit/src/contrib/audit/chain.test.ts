import { expect, test } from 'vitest';
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
