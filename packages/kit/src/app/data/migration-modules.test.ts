import { expect, test } from 'vitest';
import { describeOutdated } from './migration-modules.ts';

test('a database that is not up to date is named, with how many migrations are pending, the first three, and the command', () => {
  const pending = ['kit/0001_throttles', 'kit/0002_secrets', 'accounts/0001_initial', 'audit/0001_initial', 'jobs/0001_initial'];
  const url = 'postgres://app:***@db.example.com/shop';
  expect(describeOutdated({ alias: 'default', url, pending })).toBe(
    `The database ${url} is not up to date: 5 migrations are pending (kit/0001_throttles, kit/0002_secrets, accounts/0001_initial and 2 more). Run: npx kit migrate`,
  );
  expect(describeOutdated({ alias: 'reports', url: 'sqlite:./reports.db', pending: ['jobs/0001_initial'] })).toBe(
    'The database "reports" sqlite:./reports.db is not up to date: 1 migration is pending (jobs/0001_initial). Run: npx kit migrate',
  );
});
