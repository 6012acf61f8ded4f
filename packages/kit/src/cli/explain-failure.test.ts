import { expect, test } from 'vitest';
import { t } from '../db/column.ts';
import { dbErrors } from '../db/errors.ts';
import { migrate } from '../db/migrations/migrate.ts';
import { migration } from '../db/migrations/migration.ts';
import { createTable } from '../db/migrations/operation.ts';
import { openDatabase } from '../db/open-database.ts';
import { explainFailure } from './explain-failure.ts';

test('a full disk is said with what to do about it', () => {
  const error = dbErrors.storage_full({ message: 'database or disk is full' });
  expect(explainFailure(error)).toBe(
    'The disk of the database is full (database or disk is full). Make room on it; what was saved before is still there.',
  );
});

test('an edited migration is explained with a sentence, without a stack', async () => {
  const db = await openDatabase('sqlite::memory:');
  const initial = (columns: Parameters<typeof createTable>[1]) => [
    { name: 'shop', migrations: [migration('0001_initial', [createTable('things', columns)])] },
  ];
  await migrate(db, initial({ id: t.uuidv7().pk() }));
  const error: unknown = await migrate(db, initial({ id: t.uuidv7().pk(), extra: t.text() })).catch((reason: unknown) => reason);
  await db.close();
  expect(explainFailure(error)).toMatch(
    /^[^\n]*shop\/0001_initial[^\n]* was changed after it was applied [^\n]* put its text back and write a new migration[^\n]*$/,
  );
});
