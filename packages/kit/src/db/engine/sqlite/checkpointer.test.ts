import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Database } from '../db.ts';
import { openDatabase } from '../../open/open-database.ts';
import { countsLogPages } from './connection.ts';

const PAGE = 4096;
/** As many as a commit would copy by itself, which is four times what the thread waits for. */
const PAGES_MAX = 16_000;
/** One row fills more than a page. */
const LARGE = 'x'.repeat(5 * PAGE);

let folder: string;
let file: string;
let database: Database | undefined;
const warn = vi.fn();

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'kit-checkpoints-'));
  file = join(folder, 'app.db');
  database = await openDatabase(`sqlite:${file}`, { log: { warn, error: vi.fn() } });
  await database.query('create table notes (id integer primary key, body text not null)');
});
afterEach(async () => {
  vi.restoreAllMocks();
  warn.mockReset();
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
});

const db = (): Database => database as Database;
const write = (): Promise<unknown> => db().query('insert into notes (body) values ($1)', [LARGE]);
/** Pages that the file has by itself, without its log. */
const pagesOfFile = (): number => statSync(file).size / PAGE;
const pagesOfLog = (): number => statSync(`${file}-wal`).size / PAGE;

async function writePages(pages: number): Promise<void> {
  for (let written = 0; written < pages; written += 6) await write();
}

async function rows(): Promise<number> {
  const [row] = await db().query<{ count: number }>('select count(*) as count from notes');
  return Number(row?.count);
}

test('a long log is copied to the file before a commit would do it, and starts over', async () => {
  await writePages(5000);
  // Written to until the copy is seen: the thread takes its time to start on a busy machine.
  await vi.waitFor(
    async () => {
      await write();
      expect(pagesOfFile()).toBeGreaterThan(2500);
    },
    { timeout: 30_000, interval: 20 },
  );
  const before = pagesOfLog();
  expect(before).toBeLessThan(PAGES_MAX);
  await writePages(1000);
  // Written over from its start: a log that grew on would be longer now.
  await vi.waitFor(
    async () => {
      const size = pagesOfLog();
      await writePages(100);
      expect(pagesOfLog()).toBe(size);
    },
    { timeout: 30_000, interval: 20 },
  );
  expect(warn).not.toHaveBeenCalled();
});

test('every write that went on during copies is there, in this process and for another connection', async () => {
  let written = 0;
  const end = performance.now() + 1500;
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      while (performance.now() < end) {
        await db().transaction(async (tx) => {
          await tx.query('insert into notes (body) values ($1)', [LARGE]);
          await tx.query('update notes set body = body || $1 where id = (select max(id) from notes)', ['y']);
        });
        written += 1;
      }
    }),
  );
  expect(await rows()).toBe(written);
  const other = new DatabaseSync(file, { readOnly: true });
  try {
    expect(other.prepare("select count(*) as count from notes where body like '%xy'").get()).toEqual({ count: written });
    expect(other.prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' });
  } finally {
    other.close();
  }
});

test('closing ends the thread and leaves one file', async () => {
  await writePages(5000);
  await db().close();
  database = undefined;
  expect(existsSync(`${file}-wal`)).toBe(false);
  const other = new DatabaseSync(file, { readOnly: true });
  expect(other.prepare('select count(*) > 800 as many from notes').get()).toEqual({ many: 1 });
  other.close();
});

test('a reader that keeps the log from starting over does not stop writes', async () => {
  const reader = new DatabaseSync(file, { readOnly: true });
  reader.exec('begin');
  reader.prepare('select count(*) from notes').get();
  await writePages(9000);
  expect(await rows()).toBe(1500);
  reader.exec('commit');
  reader.close();
  await vi.waitFor(
    async () => {
      await writePages(200);
      expect(pagesOfFile()).toBeGreaterThan(6000);
    },
    { timeout: 30_000, interval: 20 },
  );
});

test.each([
  ['when it is asked to copy', 'postMessage'],
  ['before it is asked', 'unref'],
] as const)('where the thread fails %s, commits copy the log, and the log of the application says so', async (_when, method) => {
  vi.spyOn(Worker.prototype, method).mockImplementationOnce(function (this: Worker) {
    process.nextTick(() => this.emit('error', new Error('no more threads')));
  });
  await writePages(4500);
  await vi.waitFor(() => expect(warn).toHaveBeenCalledOnce());
  expect(warn.mock.calls[0]).toEqual([
    { err: new Error('no more threads') },
    expect.stringContaining('checkpoints now run during commits'),
  ]);
  // A thread that is still opening the file may hold up the first copy; the next commit goes on with it.
  await vi.waitFor(
    async () => {
      await writePages(200);
      expect(pagesOfFile()).toBeGreaterThan(2500);
    },
    { timeout: 30_000, interval: 20 },
  );
  expect(await rows()).toBeGreaterThan(750);
});

test('the log is counted by releases of SQLite that can do it without copying', () => {
  expect(['3.50.4', '3.51.0', '3.53.4', '4.0.0', undefined].map((version) => countsLogPages(version ?? ''))).toEqual([
    false,
    true,
    true,
    true,
    false,
  ]);
  expect(countsLogPages()).toBe(true);
});
