import { afterEach, expect, test, vi } from 'vitest';
import { people, preparePeopleAndKeys } from '../../../test/people.ts';
import { openDatabase } from '../../db/open-database.ts';
import { formatKey, newPrefix, newSecret } from './key.ts';
import { useApiKeys } from './use-api-keys.ts';
import { verifyApiKey } from './verify.ts';

afterEach(() => void vi.useRealTimers());

test('a refused key is answered also where a test has taken the timers', async () => {
  const db = await openDatabase('sqlite::memory:');
  await preparePeopleAndKeys(db);
  const keys = await useApiKeys(db, { users: people });
  vi.useFakeTimers();
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(await verifyApiKey(db, formatKey('kit', { prefix: newPrefix(), secret: newSecret() }))).toBeNull();
  await keys.stop();
  await db.close();
});
