import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { Database } from '../../db.ts';
import type { LongStatement } from '../../long-statement.ts';
import { engineOf } from '../../handle.ts';
import { openDatabase } from '../../../open/open-database.ts';
import type { SqliteEngine } from '../engine.ts';
import { Controller, route } from '../../../../http/index.ts';
import { allowAny } from '../../../../permissions/index.ts';
import { testApp } from '../../../../testing/index.ts';
import { ReaderPool, type ReaderPoolOptions } from './reader-pool.ts';

const ROWS = 2_000;
/** Takes minutes, as every row of the three is compared, and looks at the flag for each. */
const STOPPABLE =
  'select count(*) as count from notes a join notes b join notes c where kit_continues(a.id + b.id + c.id = 0) and lower(a.body) like b.body || c.body';
/** Takes minutes, and never looks at it. */
const UNSTOPPABLE = STOPPABLE.replace('kit_continues(a.id + b.id + c.id = 0) and ', '');

const later: LongStatement = { deadlineMs: 300_000 };

async function newFile(): Promise<{ readonly db: Database; readonly file: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'kit-readers-'));
  const file = join(folder, 'app.db');
  const db = await openDatabase(`sqlite:${file}`);
  onTestFinished(async () => {
    await db.close();
    rmSync(folder, { recursive: true, force: true });
  });
  await db.query('create table notes (id integer primary key, body text not null)');
  await db.query(
    `insert into notes with recursive c(id) as (select 1 union all select id + 1 from c where id < ${ROWS}) select id, 'note ' || id from c`,
  );
  return { db, file };
}

async function newPool(options: Partial<ReaderPoolOptions> = {}): Promise<{ readonly pool: ReaderPool; readonly db: Database }> {
  const { db, file } = await newFile();
  const log = { warn: () => undefined, error: () => undefined };
  const pool = new ReaderPool({ file, durability: 'normal', busyDeadlineMs: 60_000, max: 2, log, ...options });
  onTestFinished(() => pool.close());
  return { pool, db };
}

function pidsOf(db: Database): readonly number[] {
  return (engineOf(db) as SqliteEngine).readerPids;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** The code or message that work fails with; undefined when it does not. Also when it fails before anybody waits for it. */
function failureOf(work: Promise<unknown>): Promise<string | undefined> {
  return work.then(
    () => undefined,
    (error: { readonly code?: string; readonly message: string }) => error.code ?? error.message,
  );
}

const code = (expected: string) => expect.objectContaining({ code: expected }) as Error;

test('rows from a reader have the types and values that they have from this process, as code has them and in their wire form', async () => {
  const { db } = await newFile();
  await db.query(
    'create table kinds (id integer primary key, big bigint, at timestamp_text, doc json_text, list array_text, bigs array_text_big, ' +
      'times array_text_timestamp, flag boolean, price decimal_text(12,2), bytes blob, ratio real, words text)',
  );
  await db.query(
    `insert into kinds values (1, 9007199254740993, '2026-01-02T03:04:05.678Z', '{"a":[1,"ü",null]}', '["x"]', '["9007199254740993"]',
      '["2026-01-02T03:04:05.678Z"]', 1, '12.5', x'00ff10', 9e999, 'ünï 漢 😀' || char(0x2028)), (2, null, null, null, null, null, null, null, null, null, -0.0, '')`,
  );
  for (const as of [undefined, 'wire'] as const) {
    for (const text of [
      'select * from kinds order by id',
      'select id, words as "__proto__", ratio, count(*) over () as n, flag from kinds',
    ]) {
      const options = as === undefined ? {} : { as };
      const here = await db.query(text, [], options);
      expect(await db.query(text, [], { ...options, long: later })).toStrictEqual(here);
      const streamed: unknown[] = [];
      for await (const rows of db.stream(text, [], 1, { ...options, long: later })) streamed.push(...rows);
      expect(streamed).toStrictEqual(here);
    }
  }
  expect(pidsOf(db)).toHaveLength(1);
  const nothing = await db.query('select * from kinds where id = $1', [7], { long: later });
  expect(nothing).toEqual([]);
});

test('errors of a reader are those of this process', async () => {
  const { db } = await newFile();
  const error = async (text: string, parameters: unknown[], long?: LongStatement) =>
    db.query(text, parameters, { long }).then(
      () => 'none',
      ({ name, message, code: itsCode, errcode }: Record<string, unknown>) => ({ name, message, itsCode, errcode }),
    );
  for (const [text, parameters] of [
    ['select nothing from notes', []],
    ['select abs(-9223372036854775808)', []],
    ['select json(body) from notes', []],
    ['select $1', ['\u0000']],
    ['select $1', [Number.NaN]],
  ] as const) {
    const here = await error(text, [...parameters]);
    expect(here).not.toBe('none');
    expect(await error(text, [...parameters], later)).toEqual(here);
  }
});

test('a read that follows a committed write sees it, whichever reader it gets', async () => {
  const { db } = await newFile();
  for (let id = ROWS + 1; id <= ROWS + 200; id += 1) {
    await db.transaction((tx) => tx.query('insert into notes (id, body) values ($1, $2)', [id, 'new']));
    // One caller has half of the readers.
    const reads = ['user a', 'user b'].map((owner) => db.query('select count(*) as count from notes', [], { long: { ...later, owner } }));
    expect(await Promise.all(reads)).toEqual([[{ count: id }], [{ count: id }]]);
  }
  expect(pidsOf(db)).toHaveLength(2);
});

test('a transaction reads its own writes, and a table that was changed is read as it is now', async () => {
  const { db } = await newFile();
  await db.query('select * from notes limit 1', [], { long: later });
  await db.transaction(async (tx) => {
    await tx.query("insert into notes (id, body) values (0, 'mine')");
    expect(await tx.query('select body from notes where id = 0', [], { mayBeLong: 'notes', long: later })).toEqual([{ body: 'mine' }]);
  });
  await db.query("alter table notes add column more text not null default 'x'");
  engineOf(db).forgetStatements();
  expect(await db.query('select * from notes where id = 0', [], { long: later })).toEqual([{ id: 0, body: 'mine', more: 'x' }]);
});

test('no process is started for statements that are short, nor for a database in memory', async () => {
  const { db } = await newFile();
  await db.query('select * from notes');
  for await (const rows of db.stream('select * from notes')) expect(rows.length).toBeGreaterThan(0);
  expect(pidsOf(db)).toEqual([]);
  const memory = await openDatabase('sqlite::memory:');
  onTestFinished(() => memory.close());
  await memory.query('create table notes (id integer primary key)');
  await memory.query('insert into notes values (1)');
  expect(await memory.query('select * from notes where kit_continues(id = 0)', [], { long: later })).toEqual([{ id: 1 }]);
  for await (const rows of memory.stream('select * from notes', [], 1, { long: later })) expect(rows).toEqual([{ id: 1 }]);
  expect(pidsOf(memory)).toEqual([]);
  expect(engineOf(memory).longStatementsMax).toBeUndefined();
});

test('a statement ends at its deadline with statement_timeout, and its reader reads on', async () => {
  // Only the flag can end it.
  const { pool } = await newPool({ max: 1, stopMs: 600_000 });
  await pool.run('select 1', [], later);
  const before = pool.pids;
  await expect(pool.run(STOPPABLE, [], { deadlineMs: 20 })).rejects.toThrow(code('statement_timeout'));
  expect((await pool.run('select count(*) as count from notes', [], later)).rows).toEqual([{ count: ROWS }]);
  expect(pool.pids).toEqual(before);
});

test('a statement that does not look at the flag ends with its process, which is replaced', async () => {
  const { db } = await newFile();
  await expect(db.query(UNSTOPPABLE, [], { long: { deadlineMs: 20 } })).rejects.toThrow(code('statement_timeout'));
  const [killed = 0] = pidsOf(db);
  expect(await db.query('select count(*) as count from notes', [], { long: later })).toEqual([{ count: ROWS }]);
  await expect.poll(() => isAlive(killed)).toBe(false);
  await expect.poll(() => pidsOf(db)).not.toContain(killed);
});

test('a statement whose caller goes away ends, also while it waits for a reader', async () => {
  const { pool } = await newPool({ max: 1 });
  const running = new AbortController();
  const waiting = new AbortController();
  const first = pool.run(UNSTOPPABLE, [], { ...later, signal: running.signal });
  const second = pool.run('select 1 as one', [], { ...later, signal: waiting.signal });
  const third = pool.run('select 1 as one', [], later);
  const reason = new Error('gone');
  waiting.abort(reason);
  await expect(second).rejects.toBe(reason);
  running.abort(reason);
  await expect(first).rejects.toBe(reason);
  expect((await third).rows).toEqual([{ one: 1 }]);
  await expect(pool.run('select 1', [], { ...later, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  expect((await pool.run('select 2 as two', [], later)).rows).toEqual([{ two: 2 }]);
});

test('a statement that waited for a reader until its deadline was not sent: database_busy', async () => {
  const { pool } = await newPool({ max: 1 });
  const end = new AbortController();
  const first = pool.run(UNSTOPPABLE, [], { ...later, signal: end.signal });
  await expect(pool.run('select 1', [], { deadlineMs: 20 })).rejects.toThrow(code('database_busy'));
  end.abort(new Error('gone'));
  await expect(first).rejects.toThrow('gone');
});

test('what a reader was reading when it was killed is read by another; killed again, it fails with database_unavailable, and the pool heals', async () => {
  const { pool } = await newPool();
  await pool.run('select 1', [], later);
  const isDone = { value: false };
  const reading = pool.run(UNSTOPPABLE, [], later).finally(() => (isDone.value = true));
  reading.catch(() => undefined);
  const killed = new Set<number>();
  while (!isDone.value) {
    for (const pid of pool.pids.filter(isAlive)) {
      killed.add(pid);
      process.kill(pid, 'SIGKILL');
    }
    await turn();
  }
  await expect(reading).rejects.toThrow(code('database_unavailable'));
  expect(killed.size).toBe(2);
  expect((await pool.run('select 1 as one', [], later)).rows).toEqual([{ one: 1 }]);
  const [pid = 0] = pool.pids;
  const once = pool.run('select count(*) as count from notes a join notes b where a.body <> b.body', [], later);
  process.kill(pid, 'SIGKILL');
  expect((await once).rows).toEqual([{ count: ROWS * (ROWS - 1) }]);
  expect(pool.pids).not.toContain(pid);
});

test('a reader ignores the signals that a terminal and a service manager send to every process', async () => {
  const { db } = await newFile();
  await db.query('select 1', [], { long: later });
  const [pid = 0] = pidsOf(db);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(pid, signal);
  await db.query('select 1', [], { long: later });
  expect(pidsOf(db)).toEqual([pid]);
});

test('a stream has a process and a snapshot of its own, reads one chunk ahead, and gives its process back', async () => {
  const { db } = await newFile();
  const text = 'select id from notes where kit_continues(id = 0) order by id';
  const stream = db.stream<{ id: number }>(text, [], 100, { long: later });
  const first = (await stream.next()).value as { id: number }[];
  const mine = pidsOf(db);
  await db.query('insert into notes (id, body) values ($1, $2)', [ROWS + 1, 'later']);
  expect(await db.query('select max(id) as id from notes', [], { long: later })).toEqual([{ id: ROWS + 1 }]);
  expect(pidsOf(db)).toHaveLength(2);
  const ids = first.map(({ id }) => id);
  for await (const rows of stream) ids.push(...rows.map(({ id }) => id));
  expect(ids).toEqual(Array.from({ length: ROWS }, (_, index) => index + 1));
  expect(pidsOf(db)).toEqual(expect.arrayContaining([...mine]));
});

test('a stream whose consumer leaves, or whose chunk takes too long, or whose process is killed, ends, and its process takes the next one', async () => {
  const { db } = await newFile();
  for await (const rows of db.stream('select * from notes', [], 10, { long: later })) {
    expect(rows).toHaveLength(10);
    break;
  }
  const read = async (text: string, long: LongStatement) => {
    for await (const rows of db.stream(text, [], 100, { long })) expect(rows).toBeDefined();
  };
  const rare =
    'select a.id from notes a join notes b join notes c where kit_continues(a.id + b.id + c.id = 0) and a.body like b.body || c.body';
  await expect(read(rare, { deadlineMs: 20 })).rejects.toThrow(code('statement_timeout'));
  const gone = new AbortController();
  const ended = failureOf(read(rare, { ...later, signal: gone.signal }));
  gone.abort(new Error('gone'));
  expect(await ended).toBe('gone');
  const killed = failureOf(read(UNSTOPPABLE, later));
  await expect.poll(() => pidsOf(db).length).toBeGreaterThan(0);
  for (const pid of pidsOf(db)) process.kill(pid, 'SIGKILL');
  expect(await killed).toBe('database_unavailable');
  await read('select * from notes', later);
  await expect.poll(() => pidsOf(db).length).toBeLessThanOrEqual(2);
});

test('processes without work end, and close ends all, with statements under way', async () => {
  const { pool } = await newPool({ idleMs: 1 });
  await pool.run('select 1', [], later);
  await expect.poll(() => pool.pids).toEqual([]);
  const under = failureOf(pool.run(UNSTOPPABLE, [], later));
  const stream = pool.stream(UNSTOPPABLE, [], 1, later);
  const streamed = failureOf(stream.next());
  await expect.poll(() => pool.pids).toHaveLength(2);
  const pids = pool.pids;
  await pool.close();
  expect(await Promise.all([under, streamed])).toEqual(['database_unavailable', 'database_unavailable']);
  expect(pids.filter(isAlive)).toEqual([]);
  await expect(pool.run('select 1', [], later)).rejects.toThrow(code('database_unavailable'));
});

test('a process that is killed leaves no reader behind, neither idle nor inside SQLite, and one that ends normally is not kept alive', async () => {
  const { file } = await newFile();
  const program = `
    import { openDatabase } from ${JSON.stringify(new URL('../../../open/open-database.ts', import.meta.url).href)};
    import { engineOf } from ${JSON.stringify(new URL('../../handle.ts', import.meta.url).href)};
    const db = await openDatabase(${JSON.stringify(`sqlite:${file}`)});
    await Promise.all(['a', 'b'].map((owner) => db.query('select count(*) from notes a join notes b', [], { long: { deadlineMs: 60_000, owner } })));
    if (process.argv[1] === 'busy') db.query(${JSON.stringify(UNSTOPPABLE)}, [], { long: { deadlineMs: 600_000 } }).catch(() => undefined);
    process.stdout.write(JSON.stringify(engineOf(db).readerPids) + '\\n');
    if (process.argv[1] !== 'done') setInterval(() => undefined, 1_000);
  `;
  for (const state of ['idle', 'busy', 'done']) {
    const parent = spawn(process.execPath, ['--input-type=module', '--eval', program, state], { stdio: ['ignore', 'pipe', 'inherit'] });
    const exited = once(parent, 'exit');
    const [line] = (await once(parent.stdout, 'data')) as [Buffer];
    const pids = JSON.parse(line.toString()) as number[];
    expect(pids).toHaveLength(2);
    if (state !== 'done') parent.kill('SIGKILL');
    await exited;
    await expect.poll(() => pids.filter(isAlive)).toEqual([]);
  }
});

test('a request whose read passes its time is 503 statement_timeout, once stopped and once killed, and others are answered meanwhile', async () => {
  const { db } = await newFile();
  class NapController extends Controller {
    stopped = route.get('/stopped', { permission: allowAny, timeoutMs: 3_000 }, async () => {
      await db.query(STOPPABLE, [], { mayBeLong: 'notes of notes' });
    });
    killed = route.get('/killed', { permission: allowAny, timeoutMs: 3_000 }, async () => {
      await db.query(UNSTOPPABLE, [], { mayBeLong: 'notes of notes' });
    });
    row = route.get('/row', { permission: allowAny }, async () => void (await db.query('select * from notes where id = 1')));
  }
  const kit = await testApp({ database: db, migrate: false, mount: { '/v1': { '/': NapController } } });
  onTestFinished(() => kit.close());
  const state = { isOver: false };
  const slow = Promise.all(['/stopped', '/killed'].map((path) => kit.inject({ url: `/v1${path}` }))).finally(() => (state.isOver = true));
  let answered = 0;
  while (!state.isOver) {
    expect((await kit.inject({ url: '/v1/row' })).statusCode).toBe(204);
    answered += 1;
    await turn();
  }
  for (const { statusCode, headers, body } of await slow) {
    expect([statusCode, headers['retry-after']]).toEqual([503, undefined]);
    // On a busy machine the time of the route is over before the answer is there.
    expect(['statement_timeout', 'deadline_exceeded']).toContain((JSON.parse(body) as { code: string }).code);
  }
  expect(answered).toBeGreaterThan(10);
  expect(await db.query('select count(*) as count from notes', [], { long: later })).toEqual([{ count: ROWS }]);
});
