import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Database } from '../db.ts';
import { openDatabase } from '../../open/open-database.ts';

let folder: string;
let file: string;
const opened: Database[] = [];

async function open(options: Parameters<typeof openDatabase>[1] = {}, url = `sqlite:${file}`): Promise<Database> {
  const database = await openDatabase(url, options);
  opened.push(database);
  return database;
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kit-sqlite-'));
  file = join(folder, 'data', 'app.db');
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((database) => database.close()));
  rmSync(folder, { recursive: true, force: true });
});

describe('opening', () => {
  test('the file and its folder are made, in write-ahead mode, with foreign keys on', async () => {
    const db = await open();
    expect(await db.query('pragma journal_mode')).toEqual([{ journal_mode: 'wal' }]);
    expect(await db.query('pragma foreign_keys')).toEqual([{ foreign_keys: 1 }]);
    expect(await db.query('pragma synchronous')).toEqual([{ synchronous: 1 }]);
  });

  test('full durability is an option', async () => {
    const db = await open({ durability: 'full' });
    expect(await db.query('pragma synchronous')).toEqual([{ synchronous: 2 }]);
  });

  test.each(['mysql://x', 'sqlite:', 'app.db'])('the address %s is refused with a sentence', async (url) => {
    await expect(openDatabase(url)).rejects.toThrow(/sqlite:/);
  });

  test('a printed address never shows a password', async () => {
    await expect(openDatabase('postgres://kit:geheim@127.0.0.1:1/x')).rejects.toThrow(
      expect.objectContaining({ code: 'database_unavailable' }) as Error,
    );
    const error: unknown = await openDatabase('postgres://kit:geheim@127.0.0.1:1/x').catch((cause: unknown) => cause);
    expect(JSON.stringify(error) + String(error)).not.toContain('geheim');
  });
});

test('a damaged file is a failure of its own, that says what to do, in reading, streaming and writing', async () => {
  const first = await open();
  await first.query('create table notes (id integer primary key, body text)');
  for (let id = 1; id <= 300; id += 1) await first.query('insert into notes (id, body) values ($1, $2)', [id, 'x'.repeat(1000)]);
  await first.close();
  const handle = openSync(file, 'r+');
  // Every page but the first, which has the table of contents.
  writeSync(handle, Buffer.alloc(80 * 4096, 0xff), 0, 80 * 4096, 4096);
  closeSync(handle);
  const db = await open();
  const damaged = expect.objectContaining({ code: 'database_damaged', status: 503 }) as Error;
  await expect(db.query('select sum(length(body)) from notes')).rejects.toThrow(damaged);
  await expect(db.query('insert into notes (body) values ($1)', ['y'])).rejects.toThrow(damaged);
  await expect(
    (async () => {
      for await (const rows of db.stream('select body from notes')) expect(rows).toEqual([]);
    })(),
  ).rejects.toThrow(damaged);
});

describe('one writer', () => {
  test('reads see the last commit and do not wait for an open transaction', async () => {
    const db = await open();
    await db.query('create table notes (id integer primary key)');
    await db.transaction(async (tx) => {
      await tx.query('insert into notes (id) values (1)');
      expect(await db.query('select id from notes')).toEqual([]);
    });
    expect(await db.query('select id from notes')).toEqual([{ id: 1 }]);
  });

  test('what a transaction that was not rolled back left on the connection is not read by others', async () => {
    const db = await open();
    await db.query('create table notes (id integer primary key)');
    await db.query('begin');
    await db.query('insert into notes (id) values (1)');
    expect(await db.query('select id from notes')).toEqual([]);
    await db.query('rollback');
    expect(await db.query('select id from notes')).toEqual([]);
  });

  test('writing through the outer handle inside a transaction is refused instead of waiting forever', async () => {
    const db = await open();
    await db.query('create table notes (id integer primary key)');
    await db.transaction(async (tx) => {
      await expect(db.query('insert into notes (id) values (1)')).rejects.toThrow('use the transaction handle, not the database handle');
      await expect(db.transaction(async () => undefined)).rejects.toMatchObject({ code: 'outer_handle_in_transaction' });
      await tx.query('insert into notes (id) values (2)');
    });
    expect(await db.query('select id from notes')).toEqual([{ id: 2 }]);
  });

  test('work that a transaction started but did not wait for may write once the transaction is over', async () => {
    const db = await open();
    await db.query('create table notes (id integer primary key)');
    let later: Promise<unknown> | undefined;
    await db.transaction(async () => {
      later = new Promise((done) => setTimeout(done, 5)).then(() => db.query('insert into notes (id) values (1)'));
    });
    await later;
    expect(await db.query('select id from notes')).toEqual([{ id: 1 }]);
  });

  test('a transaction of another connection is waited for without blocking the event loop', async () => {
    const db = await open();
    await db.query('create table notes (id integer primary key)');
    const other = new DatabaseSync(file, { timeout: 0 });
    other.exec('begin immediate; insert into notes (id) values (1)');
    let ticks = 0;
    const timer = setInterval(() => ++ticks === 5 && other.exec('commit'), 2);
    await db.query('insert into notes (id) values (2)');
    clearInterval(timer);
    expect(ticks).toBeGreaterThanOrEqual(5);
    expect(await db.query('select id from notes order by id')).toEqual([{ id: 1 }, { id: 2 }]);
    other.close();
  });

  test('a writer that never ends makes others fail with a code after the deadline, and the handle stays usable', async () => {
    const db = await open({ waitMsMax: 30 });
    await db.query('create table notes (id integer primary key)');
    const other = new DatabaseSync(file, { timeout: 0 });
    other.exec('begin immediate');
    await expect(db.query('insert into notes (id) values (1)')).rejects.toMatchObject({ code: 'database_busy', status: 503 });
    await expect(db.transaction(async () => undefined)).rejects.toMatchObject({ code: 'database_busy' });
    other.exec('rollback');
    other.close();
    await db.query('insert into notes (id) values (1)');
    await db.transaction(async (tx) => {
      const waiting = open({ waitMsMax: 20 }).then((second) => second.query('insert into notes (id) values (3)'));
      await expect(waiting).rejects.toMatchObject({ code: 'database_busy' });
      await tx.query('insert into notes (id) values (2)');
    });
    expect(await db.query('select id from notes')).toHaveLength(2);
  });

  test('an in-memory database keeps transactions apart too', async () => {
    const db = await open({}, 'sqlite::memory:');
    await db.query('create table notes (id integer primary key)');
    const outside: unknown[] = [];
    const reading = (async () => {
      await new Promise((done) => setImmediate(done));
      outside.push(...(await db.query('select id from notes')));
    })();
    await db
      .transaction(async (tx) => {
        await tx.query('insert into notes (id) values (1)');
        await new Promise((done) => setTimeout(done, 10));
        throw new Error('undo');
      })
      .catch(() => undefined);
    await reading;
    expect(outside).toEqual([]);
  });

  test('closing waits for the transaction under way', async () => {
    const db = await openDatabase(`sqlite:${file}`);
    await db.query('create table notes (id integer primary key)');
    const work = db.transaction(async (tx) => {
      await new Promise((done) => setTimeout(done, 10));
      await tx.query('insert into notes (id) values (1)');
    });
    await new Promise((done) => setImmediate(done));
    await Promise.all([work, db.close(), db.close()]);
    await expect(db.query('insert into notes (id) values (2)')).rejects.toMatchObject({ code: 'database_unavailable' });
    const again = await open();
    expect(await again.query('select id from notes')).toEqual([{ id: 1 }]);
  });

  test('a table changed by another process is noticed by statements with *', async () => {
    const db = await open();
    await db.query('create table notes (id integer primary key)');
    await db.query('insert into notes (id) values (1)');
    expect(await db.query('select * from notes')).toEqual([{ id: 1 }]);
    const other = new DatabaseSync(file);
    other.exec(`alter table notes add column at timestamp_text not null default '2026-01-01T00:00:00.000Z'`);
    other.close();
    expect(await db.query('select * from notes')).toEqual([{ id: 1, at: new Date('2026-01-01T00:00:00.000Z') }]);
  });
});

describe('statement texts', () => {
  test('$1 may be repeated, reordered and appear inside quotes and comments', async () => {
    const db = await open();
    const [row] = await db.query(`select $2 as b, $1 as a, $2 as again, '$1 it''s' as quoted, "$1" as name from (select 7 as "$1") -- $3`, [
      'a',
      'b',
    ]);
    expect(row).toEqual({ a: 'a', b: 'b', again: 'b', quoted: "$1 it's", name: 7 });
  });

  test('a write behind WITH goes to the writer, a read behind WITH to the reader', async () => {
    const db = await open();
    await db.query('create table notes (id integer primary key)');
    await db.query('with source as (select 1 as id) insert into notes (id) select id from source');
    expect(await db.query('with source as (select id from notes) select * from source')).toEqual([{ id: 1 }]);
  });

  test('a column called __proto__ is data', async () => {
    const db = await open();
    const [row] = await db.query<object>('select 1 as "__proto__", 2 as b');
    expect(Object.getPrototypeOf(row)).toBe(Object.prototype);
    expect(Object.entries(row ?? {})).toEqual([
      ['__proto__', 1],
      ['b', 2],
    ]);
  });
});

describe('a full disk', () => {
  const filled = async (): Promise<Database> => {
    const db = await open();
    await db.query('create table notes (id integer primary key, body text not null)');
    await db.query('insert into notes (id, body) values (1, $1)', ['kept']);
    await db.query('pragma max_page_count = 20');
    return db;
  };
  const LONG = 'x'.repeat(200_000);

  test('is a 503 that loses nothing: the transaction is rolled back, what was saved is read, and writing goes on once there is room', async () => {
    const db = await filled();
    const filling = db.transaction(async (tx) => {
      await tx.query('insert into notes (id, body) values (2, $1)', ['with the rest']);
      for (let id = 3; id < 100; id++) await tx.query('insert into notes (id, body) values ($1, $2)', [id, 'x'.repeat(4000)]);
    });
    await expect(filling).rejects.toMatchObject({ code: 'storage_full', status: 503 });
    expect(await db.query('select id, body from notes')).toEqual([{ id: 1, body: 'kept' }]);
    await expect(db.query('insert into notes (id, body) values (2, $1)', [LONG])).rejects.toMatchObject({ code: 'storage_full' });
    await db.query('pragma max_page_count = 100000');
    await db.query('insert into notes (id, body) values (2, $1)', [LONG]);
    expect(await db.query('select count(*) as count from notes')).toEqual([{ count: 2 }]);
  });

  test('ends the whole transaction, as SQLite does then, also when a savepoint met it: nothing that follows is saved without the rest', async () => {
    const db = await filled();
    const lost = db.transaction(async (tx) => {
      await tx.query('insert into notes (id, body) values (2, $1)', ['before']);
      const inner = tx.transaction((savepoint) => savepoint.query('insert into notes (id, body) values (3, $1)', [LONG]));
      await expect(inner).rejects.toMatchObject({ code: 'storage_full' });
      await tx.query('insert into notes (id, body) values (4, $1)', ['after']);
    });
    await expect(lost).rejects.toMatchObject({ code: 'transaction_aborted' });
    expect(await db.query('select id from notes')).toEqual([{ id: 1 }]);
    await db.query('update notes set body = $1', ['still writable']);
  });
});
