import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, inject, test } from 'vitest';
import { createPostgresDatabase } from 'kit/testing';
import { people, preparePeopleAndKeys } from '../../../../test/people.ts';
import { openDatabase } from '../../../db/open/open-database.ts';
import { createApiKey } from '../manage/create.ts';
import { revokeApiKey } from '../manage/revoke.ts';
import { useApiKeys } from '../request/use-api-keys.ts';

test('a second process with a cache stops letting a key in when this one revokes it', async () => {
  const database = await createPostgresDatabase(inject('postgresUrl'));
  const db = await openDatabase(database.url);
  await preparePeopleAndKeys(db);
  const keys = await useApiKeys(db, { users: people });
  const { apiKey, raw } = await createApiKey(db, { user: 'no-ada', name: 'CI', scopes: [] });
  const script = join(import.meta.dirname, '../../../../test/serve-cached.ts');
  const child = spawn(process.execPath, ['--conditions=source', script, database.url, raw], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  expect((await lines.next()).value).toBe('ready');
  await new Promise((resolve) => setTimeout(resolve, 200));
  const beforeMs = Date.now();
  await revokeApiKey(db, apiKey);
  const lastMs = Number((await lines.next()).value);
  // It got as far as this line because a look failed: the entry it trusted would have lasted five minutes more.
  expect(lastMs, 'and until the revoke it was let in').toBeGreaterThan(beforeMs - 60_000);
  await keys.stop();
  await db.close();
  await database.remove();
}, 600_000);
