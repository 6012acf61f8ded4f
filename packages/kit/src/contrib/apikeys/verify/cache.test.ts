import { expect, test } from 'vitest';
import { KeyCache } from './cache.ts';
import type { VerifiableKey } from '../rows/store.ts';

const now = new Date('2030-01-01T00:00:00.000Z');
const soon = () => new Date('2030-01-02T00:00:00.000Z');
const apiKey = {
  prefix: 'abcdefghijkl',
  owner_id: 'u1',
  scopes: ['a:b'],
  created_at: soon(),
  last_used_at: soon(),
  expires_at: soon(),
  revoked_at: null,
  previous_expires_at: soon(),
  previous_last_used_at: soon(),
};
const key = { row: apiKey, apiKey, owner: { id: 'u1' } } as unknown as VerifiableKey;
const opened = () => {
  const cache = new KeyCache({ maxAgeMs: 1000, entriesMax: 10 });
  cache.open();
  return cache;
};

test.each<[string, (cache: KeyCache) => void]>([
  ['its key changed', (cache) => cache.dropKey(apiKey.prefix)],
  ['its owner changed', (cache) => cache.dropOwner('u1')],
  ['everything was forgotten', (cache) => cache.clear()],
  ['notifications were lost and came back', (cache) => (cache.shut(), cache.open())],
])('a row that was read before %s is not kept', (_name, change) => {
  const cache = opened();
  const { epoch } = cache;
  change(cache);
  cache.put(key, now, epoch);
  expect(cache.get(apiKey.prefix, now)).toBeUndefined();
  cache.put(key, now, cache.epoch);
  expect(cache.get(apiKey.prefix, now)).toEqual(key);
});

test('a cache without notifications of changes keeps nothing', () => {
  const cache = new KeyCache({ maxAgeMs: 1000, entriesMax: 10 });
  cache.put(key, now, cache.epoch);
  expect(cache.get(apiKey.prefix, now)).toBeUndefined();
  cache.open();
  cache.put(key, now, cache.epoch);
  cache.shut();
  expect(cache.get(apiKey.prefix, now)).toBeUndefined();
});

test('what every hit hands out cannot be changed', () => {
  const cache = opened();
  cache.put(key, now, cache.epoch);
  const kept = cache.get(apiKey.prefix, now);
  expect(kept).toEqual(key);
  expect([kept?.apiKey, kept?.apiKey.scopes, kept?.owner].map((shared) => Object.isFrozen(shared))).toEqual([true, true, true]);
  // Neither by who got the row when it was read, nor by who got it from the cache.
  for (const handed of [key.apiKey, kept?.apiKey])
    for (const date of Object.values(handed ?? {})) if (date instanceof Date) date.setFullYear(2099);
  const { row, apiKey: next } = cache.get(apiKey.prefix, now) ?? {};
  for (const dates of [row, next])
    expect(Object.values(dates ?? {}).filter((value) => value instanceof Date)).toEqual(Array.from({ length: 5 }, soon));
});
