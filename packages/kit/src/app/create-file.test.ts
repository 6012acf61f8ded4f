import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createApp } from './assemble/create-app.ts';
import { driftOf, migrateApp, pendingOf } from './data/migration-modules.ts';

test('looking at what is pending, or at the SQL of a dry run, creates no SQLite file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kit-create-file-'));
  const file = join(folder, 'data', 'app.db');
  const app = createApp({ database: `sqlite:${file}`, log: { level: 'silent' }, mount: {} });
  try {
    await app.openDatabases({ createFiles: false });
    expect((await pendingOf(app)).length).toBeGreaterThan(0);
    expect((await driftOf(app)).database).toEqual([]);
    expect((await migrateApp(app, { dryRun: true })).applied.length).toBeGreaterThan(0);
    expect(existsSync(join(folder, 'data'))).toBe(false);
  } finally {
    await app.close();
    rmSync(folder, { recursive: true });
  }
});
