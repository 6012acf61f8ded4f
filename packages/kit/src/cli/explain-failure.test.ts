import { expect, test } from 'vitest';
import { dbErrors } from '../db/errors.ts';
import { explainFailure } from './explain-failure.ts';

test('a full disk is said with what to do about it', () => {
  const error = dbErrors.storage_full({ message: 'database or disk is full' });
  expect(explainFailure(error)).toBe(
    'The disk of the database is full (database or disk is full). Make room on it; what was saved before is still there.',
  );
});
