import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { t } from '../../db/declare/column.ts';
import { dbErrors } from '../../db/errors.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { migration } from '../../db/migrations/migration.ts';
import { createTable } from '../../db/migrations/operation.ts';
import { openDatabase } from '../../db/open/open-database.ts';
import { userCommand } from '../../contrib/accounts/commands.ts';
import { groupCommand } from '../../contrib/accounts/serve/group-commands.ts';
import { apiKeyCommand } from '../../contrib/apikeys/commands.ts';
import { auditCommand } from '../../contrib/audit/commands.ts';
import { grantsCommand } from '../../contrib/grants/commands.ts';
import { jobsCommand } from '../../contrib/jobs/commands/commands.ts';
import { mcpCommand } from '../../contrib/mcp/commands.ts';
import { uploadsCommand } from '../../contrib/uploads/commands.ts';
import { webhooksCommand } from '../../contrib/webhooks/commands/commands.ts';
import { explainFailure, missingModule } from './explain-failure.ts';

test('a full disk is said with what to do about it', () => {
  const error = dbErrors.storage_full({ message: 'database or disk is full' });
  expect(explainFailure(error)).toBe(
    'The disk of the database is full (database or disk is full). Make room on it; what was saved before is still there.',
  );
});

test('every command that a module of the kit brings is known without the module', () => {
  const brought = {
    accounts: [userCommand, groupCommand],
    apikeys: [apiKeyCommand],
    audit: [auditCommand],
    grants: [grantsCommand],
    jobs: [jobsCommand],
    mcp: [mcpCommand(() => undefined as never)],
    uploads: [uploadsCommand],
    webhooks: [webhooksCommand],
  };
  for (const [module, commands] of Object.entries(brought)) {
    for (const { name } of commands)
      expect([name, missingModule(name)]).toEqual([name, expect.stringContaining(`kit/contrib/${module}: add it to`)]);
  }
});

test.each<[string, string, (file: string) => void, RegExp]>([
  ['a folder', 'data', (file) => mkdirSync(file), /unable to open database file\. The address must name a file, not a folder/],
  [
    'a file of something else',
    'notes.txt',
    (file) => writeFileSync(file, 'x'.repeat(4096)),
    /file is not a database\. It is not a SQLite database/,
  ],
  ['a file below a file', 'notes.txt/app.db', (file) => writeFileSync(dirname(file), ''), /ENOTDIR|EEXIST/],
  ['a damaged file', 'app.db', damage, /database disk image is malformed\. It is damaged\. Stop the app, keep a copy/],
])('%s instead of a database is named, with what to do and without a stack', async (_name, path, make, sentence) => {
  const folder = mkdtempSync(join(tmpdir(), 'kit-unusable-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, path);
  make(file);
  const error: unknown = await openDatabase(`sqlite:${file}`).catch((reason: unknown) => reason);
  expect(explainFailure(error)).toMatch(sentence);
  expect(explainFailure(error)).toContain(`The database file ${file} cannot be opened: `);
});

/** The first page stays, with the size that it says. */
function damage(file: string): void {
  const database = new DatabaseSync(file);
  database.exec(`create table notes (text); insert into notes values ('${'x'.repeat(40_000)}')`);
  database.close();
  truncateSync(file, 8192);
}

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
