import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { runUntilKilled } from '../../../../test/run-until-killed.ts';

const PROGRAM = join(import.meta.dirname, '../../../../test/write-until-killed.ts');
const MEGABYTE = 1024 * 1024;

test('a process that is killed while a thread copies its log loses no commit, and leaves a whole file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kit-killed-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'app.db');
  const database = new DatabaseSync(file);
  onTestFinished(() => database.close());
  database.exec('pragma journal_mode = wal; create table notes (id integer primary key, body text not null)');
  // A row is five pages, and a copy begins at 4,000: killed before, at the start of the first and the second copy, and in between.
  for (const rows of [600, 801, 810, 830, 900, 1650]) {
    const last = await runUntilKilled(PROGRAM, [file], rows);
    expect(last).toBeGreaterThanOrEqual(rows);
    const { count, highest } = database.prepare('select count(*) as count, max(id) as highest from notes').get() as Record<string, number>;
    expect(highest).toBeGreaterThanOrEqual(last);
    expect(count).toBe(highest);
    expect(database.prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' });
  }
  // Copies did happen.
  expect(statSync(file).size).toBeGreaterThan(60 * MEGABYTE);
}, 240_000);
