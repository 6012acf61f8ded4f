import { afterEach, expect, test, vi } from 'vitest';
import { addPerson, people, preparePeopleAndKeys, setEnabled } from '../../../../test/people.ts';
import { openDatabase } from '../../../db/open/open-database.ts';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { createApiKey } from '../manage/create.ts';
import type * as Digest from '../key/digest.ts';
import { formatKey, newPrefix, newSecret } from '../key/key.ts';
import { revokeApiKey } from '../manage/revoke.ts';
import { useApiKeys } from '../request/use-api-keys.ts';
import { verifyApiKey } from './verify.ts';

const steps = vi.hoisted(() => [] as string[]);
vi.mock('../key/digest.ts', async (original) => {
  const real = await original<typeof Digest>();
  const secretDigest: typeof Digest.secretDigest = (...values) => (steps.push('hash'), real.secretDigest(...values));
  const sameDigest: typeof Digest.sameDigest = (...values) => (steps.push('compare'), real.sameDigest(...values));
  return { ...real, secretDigest, sameDigest };
});

afterEach(() => void vi.useRealTimers());

const setUp = async () => {
  const clock = fakeClock('2030-01-01T00:00:00.000Z');
  const db = await openDatabase('sqlite::memory:');
  await preparePeopleAndKeys(db);
  const keys = await useApiKeys(db, { users: people, clock });
  return { clock, db, end: async () => (await keys.stop(), await db.close()) };
};
const stranger = () => formatKey('kit', { prefix: newPrefix(), secret: newSecret() });

test('whatever is wrong with a key, its secret is hashed and compared: also where there is no row', async () => {
  const { clock, db, end } = await setUp();
  await addPerson(db, 'gone');
  const make = async (user: string, expiresAt: Date | null = null) => createApiKey(db, { user, name: 'x', scopes: [], expiresAt });
  const [good, revoked, owned] = [await make('no-ada'), await make('no-ada'), await make('no-gone')];
  const expired = await make('no-ada', new Date(clock.now().getTime() + 1));
  await revokeApiKey(db, revoked.apiKey);
  await setEnabled(db, 'gone', false);
  clock.advance(1);
  const wrong = formatKey('kit', { prefix: good.apiKey.prefix, secret: newSecret() });
  for (const raw of [stranger(), wrong, revoked.raw, expired.raw, owned.raw]) {
    steps.length = 0;
    expect(await verifyApiKey(db, raw)).toBeNull();
    expect(steps).toEqual(['hash', 'compare']);
  }
  steps.length = 0;
  expect(await verifyApiKey(db, 'garbage')).toBeNull();
  expect(steps).toEqual([]);
  await end();
});

test('a refused key is answered also where a test has taken the timers', async () => {
  const { db, end } = await setUp();
  vi.useFakeTimers();
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(await verifyApiKey(db, stranger())).toBeNull();
  await end();
});
