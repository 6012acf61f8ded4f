import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createPostgresDatabase, type DatabasePlace } from 'kit/testing';
import type { Database, Db } from '../db.ts';
import { openDatabase } from '../open-database.ts';
import { countQueries } from '../query-observer.ts';

let place: DatabasePlace;
let db: Database;
let operator: pg.Client;

beforeAll(async () => {
  place = await createPostgresDatabase(inject('postgresUrl'));
  db = await openDatabase(place.url, { poolMax: 4 });
  operator = new pg.Client({ connectionString: place.url });
  await operator.connect();
  await db.query('create table notes (id integer primary key, value integer not null default 0)');
});
afterAll(async () => {
  await operator.end();
  await db.close();
  await place.remove();
});

const backendOf = async (tx: Db): Promise<number> => (await tx.query<{ pid: number }>('select pg_backend_pid() as pid'))[0]?.pid ?? 0;
const terminate = (pid: number): Promise<unknown> => operator.query('select pg_terminate_backend($1)', [pid]);

test('a full disk is a 503, and the connection that met it works on', async () => {
  const full = `do $$ begin raise exception 'could not extend file "base/1/2": No space left on device' using errcode = '53100'; end $$`;
  await expect(db.query(full)).rejects.toMatchObject({ code: 'storage_full', status: 503 });
  const lost = db.transaction(async (tx) => {
    await tx.query('insert into notes (id) values (900)');
    await tx.query(full);
  });
  await expect(lost).rejects.toMatchObject({ code: 'storage_full' });
  await db.transaction(async (tx) => {
    const backend = await backendOf(tx);
    await expect(tx.transaction((savepoint) => savepoint.query(full))).rejects.toMatchObject({ code: 'storage_full' });
    expect(await backendOf(tx)).toBe(backend);
  });
  expect(await db.query('select id from notes where id = 900')).toEqual([]);
});

test(
  'a caller that sends new statements all the time neither fills the server nor takes the names of statements in use',
  { timeout: 120_000 },
  async () => {
    const own = await openDatabase(place.url, { poolMax: 1 });
    try {
      const used = 'select id, value from notes where id = $1';
      const isNamed = async (text: string) =>
        (await own.query('select name from pg_prepared_statements where statement = $1', [text])).length === 1;
      const held = async () => (await own.query<{ count: number }>('select count(*) as count from pg_prepared_statements'))[0]?.count ?? 0;
      await Promise.all([own.query(used, [1]), own.query(used, [1])]);
      await own.query(used, [1]);
      let most = 0;
      for (let number = 0; number < 2000; number += 1) {
        const text = `select ${number} as number`;
        await own.query(text);
        await own.query(text);
        if (number % 100 === 0) {
          await own.query(used, [1]);
          most = Math.max(most, await held());
        }
      }
      expect(await isNamed(used)).toBe(true);
      expect(await isNamed('select 1999 as number')).toBe(true);
      expect(await isNamed('select 0 as number')).toBe(false);
      expect(most).toBeGreaterThan(1000);
      expect(most).toBeLessThanOrEqual(1500);
    } finally {
      await own.close();
    }
  },
);

describe('lost connections', () => {
  test('a transaction whose connection dies half way rejects, saves nothing and leaves a healthy pool', async () => {
    for (let round = 0; round < 6; round++) {
      const lost = db.transaction(async (tx) => {
        await tx.query('insert into notes (id) values ($1)', [1000 + round]);
        await terminate(await backendOf(tx));
        await tx.query('insert into notes (id) values ($1)', [2000 + round]);
      });
      await expect(lost).rejects.toMatchObject({ code: 'database_unavailable', status: 503 });
    }
    expect(await db.query('select id from notes where id >= 1000')).toEqual([]);
    const answers = await Promise.all(Array.from({ length: 12 }, () => db.query<{ one: number }>('select 1 as one')));
    expect(answers.flat()).toHaveLength(12);
  });

  test('a connection that dies while its transaction does something else is noticed at the next statement', async () => {
    const lost = db.transaction(async (tx) => {
      await terminate(await backendOf(tx));
      await new Promise((done) => setTimeout(done, 50));
      await tx.transaction(async (inner) => inner.query('select 1'));
    });
    await expect(lost).rejects.toMatchObject({ code: 'database_unavailable' });
    expect(await db.query('select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('a connection lost during COMMIT is reported as an unknown outcome', async () => {
    await db.query('create table deferred (id integer primary key, parent integer references deferred (id) deferrable initially deferred)');
    await db.query(`create function slow_check() returns trigger language plpgsql as $$ begin perform pg_sleep(5); return null; end $$`);
    await db.query(
      'create constraint trigger slow after insert on deferred deferrable initially deferred for each row execute function slow_check()',
    );
    let pid = 0;
    const committing = db.transaction(async (tx) => {
      pid = await backendOf(tx);
      await tx.query('insert into deferred (id) values (1)');
    });
    const outcome = committing.catch((error: unknown) => error);
    for (let left = 100; left > 0; left--) {
      const state = await operator.query(`select 1 from pg_stat_activity where pid = $1 and wait_event = 'PgSleep'`, [pid]);
      if (state.rowCount === 1) break;
      await new Promise((done) => setTimeout(done, 20));
    }
    await terminate(pid);
    expect(await outcome).toMatchObject({ code: 'commit_unknown' });
    expect(await db.query('select id from deferred')).toEqual([]);
  });

  test.each(['connection terminated', 'client was closed', 'not queryable', 'Cannot use a pool'])(
    'the words %j in a caller’s value are no lost connection',
    async (words) => {
      const before = await backendOf(db);
      const refused = db.query('select cast($1 as uuid)', [words]);
      await expect(refused).rejects.toMatchObject({ code: '22P02' });
      expect(await backendOf(db)).toBe(before);
    },
  );

  test('idle connections that the server ends are replaced', async () => {
    await Promise.all(Array.from({ length: 4 }, () => db.query('select pg_sleep(0.02)')));
    await operator.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    );
    await new Promise((done) => setTimeout(done, 100));
    expect(await db.query('select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('more statements than connections wait; one that waits too long is refused with a code', async () => {
    const small = await openDatabase(place.url, { poolMax: 1, waitMsMax: 2000 });
    await expect(
      small.transaction(async () => {
        await small.query('select 1'); // the only connection is this transaction's
      }),
    ).rejects.toMatchObject({ code: 'database_unavailable' });
    expect(await small.query('select 1 as one')).toEqual([{ one: 1 }]);
    await small.close();
  });
});

describe('retries', () => {
  test('work that loses a serialization conflict is run again when asked, and callbacks belong to the run that commits', async () => {
    await db.query('insert into notes (id, value) values (1, 0)');
    let runs = 0;
    const committed: number[] = [];
    const increment = (): Promise<void> =>
      db.transaction(
        async (tx) => {
          const run = ++runs;
          tx.afterCommit(() => committed.push(run));
          const [row] = await tx.query<{ value: number }>('select value from notes where id = 1');
          await new Promise((done) => setTimeout(done, 5));
          await tx.query('update notes set value = $1 where id = 1', [(row?.value ?? 0) + 1]);
        },
        { isolation: 'serializable', retries: 20 },
      );
    await Promise.all([increment(), increment(), increment(), increment()]);
    expect(await db.query('select value from notes where id = 1')).toEqual([{ value: 4 }]);
    expect(committed).toHaveLength(4);
    expect(runs).toBeGreaterThan(4);
  });

  test('without retries the conflict is passed on', async () => {
    const read = async (tx: Db): Promise<unknown> => tx.query('select sum(value) as sum from notes');
    const clash = db.transaction(
      async (tx) => {
        await read(tx);
        await db.transaction(
          async (other) => {
            await read(other);
            await other.query('update notes set value = value + 1 where id = 1');
          },
          { isolation: 'serializable' },
        );
        await tx.query('update notes set value = value + 1 where id = 1');
      },
      { isolation: 'serializable' },
    );
    await expect(clash).rejects.toMatchObject({ code: '40001' });
  });

  test('a deadlock is retried too', async () => {
    await db.query('insert into notes (id) values (11), (12)');
    await operator.query(`alter database "${new URL(place.url).pathname.slice(1)}" set deadlock_timeout = '50ms'`);
    const quick = await openDatabase(place.url);
    const both = (first: number, second: number): Promise<unknown> =>
      quick.transaction(
        async (tx) => {
          await tx.query('update notes set value = value + 1 where id = $1', [first]);
          await new Promise((done) => setTimeout(done, 20));
          await tx.query('update notes set value = value + 1 where id = $1', [second]);
        },
        { retries: 5 },
      );
    await Promise.all([both(11, 12), both(12, 11)]);
    expect(await quick.query('select value from notes where id in (11, 12)')).toEqual([{ value: 2 }, { value: 2 }]);
    await quick.close();
  });
});

describe('prepared statements', () => {
  const prepared = async (handle: Db): Promise<number> =>
    handle.transaction(async (tx) => {
      for (let each = 0; each < 4; each++) await tx.query('select value from notes where id = $1', [each]);
      return (
        (await tx.query<{ n: number }>(`select count(*) as n from pg_prepared_statements where statement like '%from notes where id%'`))[0]
          ?.n ?? -1
      );
    });

  test('a statement used again is prepared under a name; prepare: false leaves nothing on the server', async () => {
    const named = await openDatabase(place.url, { poolMax: 1 });
    const unnamed = await openDatabase(place.url, { poolMax: 1, prepare: false });
    expect(await prepared(named)).toBe(1);
    expect(await prepared(unnamed)).toBe(0);
    await Promise.all([named.close(), unnamed.close()]);
  });

  test('a statement to be replanned has no name, in and outside a transaction, however often it is used', async () => {
    const one = await openDatabase(place.url, { poolMax: 1 });
    const read = (handle: Db) => handle.query('select value from notes where id = $1', [1], { replanned: true });
    for (let each = 0; each < 4; each++) await read(one);
    await one.transaction(async (tx) => {
      for (let each = 0; each < 4; each++) await read(tx);
    });
    expect(await one.query('select count(*) as n from pg_prepared_statements')).toEqual([{ n: 0 }]);
    await one.close();
  });

  test('statements of ever new shape do not pile up on the server', async () => {
    const one = await openDatabase(place.url, { poolMax: 1 });
    for (let length = 1; length <= 40; length++)
      await one.query(`select ${Array.from({ length }, (_, index) => `$${index + 1}::int`).join(' + ')} as sum`, Array(length).fill(1));
    expect(await one.query('select count(*) as n from pg_prepared_statements')).toEqual([{ n: 0 }]);
    await one.close();
  });

  test('a named statement whose table changed meanwhile answers with the new columns', async () => {
    await db.query('create table changing (id integer primary key)');
    await db.query('insert into changing (id) values (1)');
    for (let each = 0; each < 20; each++) await db.query('select * from changing');
    await operator.query('alter table changing add column more bigint not null default 5');
    expect(await db.query('select * from changing')).toEqual([{ id: 1, more: 5n }]);
  });
});

describe('pipelined statements', () => {
  const short = (handle: Db, number: number) =>
    handle.query<{ number: number; pid: number }>('select 12 / $1::int as number, pg_backend_pid() as pid', [number], { pipelined: true });

  test('statements under way together share a connection, and each has its own answer or its own error', async () => {
    const outcomes = await Promise.allSettled([1, 2, 0, 3, 0, 4].map((number) => short(db, number)));
    const rows = outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value[0]?.number : (outcome.reason as Error).message));
    expect(rows).toEqual([12, 6, 'division by zero', 4, 'division by zero', 3]);
    expect(new Set(outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value[0]?.pid] : []))).size).toBe(1);
  });

  test('no more than 32 wait behind one another; the next take another connection', async () => {
    const rows = (await Promise.all(Array.from({ length: 64 }, () => short(db, 1)))).flat();
    expect(rows).toHaveLength(64);
    expect(new Set(rows.map(({ pid }) => pid)).size).toBe(2);
  });

  test('each is counted as the one statement it is', async () => {
    const { count } = await countQueries(() => Promise.all([short(db, 1), short(db, 2), short(db, 3)]));
    expect(count).toBe(3);
  });

  test('a lost connection fails those under way on it, not the next', async () => {
    const slow = Promise.allSettled(
      Array.from({ length: 5 }, () => db.query('select pg_sleep(5), pg_backend_pid()', [], { pipelined: true })),
    );
    const asleep = async () =>
      (await operator.query<{ pid: number }>(`select pid from pg_stat_activity where wait_event = 'PgSleep'`)).rows[0]?.pid;
    await expect.poll(asleep).toBeTypeOf('number');
    await terminate((await asleep()) ?? 0);
    for (const outcome of await slow) expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'database_unavailable' } });
    expect(await short(db, 3)).toMatchObject([{ number: 4 }]);
  });

  test('without a free connection they are refused together, and the next are served', async () => {
    const small = await openDatabase(place.url, { poolMax: 1, waitMsMax: 300 });
    const refused = await small.transaction(() => Promise.allSettled([short(small, 1), short(small, 2)]));
    for (const outcome of refused) expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'database_unavailable' } });
    expect(await short(small, 3)).toMatchObject([{ number: 4 }]);
    await small.close();
  });

  test('inside a transaction they are statements of the transaction', async () => {
    await db.transaction(async (tx) => {
      const pid = await backendOf(tx);
      expect(await Promise.all([short(tx, 1), short(tx, 2)])).toMatchObject([[{ pid }], [{ pid }]]);
    });
  });

  test('prepare: false gives every statement a connection of its own', async () => {
    const unnamed = await openDatabase(place.url, { poolMax: 3, prepare: false });
    const rows = (await Promise.all([short(unnamed, 1), short(unnamed, 2), short(unnamed, 3)])).flat();
    expect(new Set(rows.map(({ pid }) => pid)).size).toBe(3);
    await unnamed.close();
  });
});

test('values are read the same whatever the session time zone', async () => {
  await db.query('create table moments (at timestamp(3) with time zone, day date)');
  const at = new Date('1890-06-15T12:34:56.789Z');
  await db.query('insert into moments values ($1, $2)', [at, '1890-06-15']);
  for (const zone of ['UTC', 'America/New_York', 'Asia/Kolkata', 'Pacific/Kiritimati']) {
    const rows = await db.transaction(async (tx) => {
      await tx.query(`set local time zone '${zone}'`);
      return tx.query('select at, day from moments');
    });
    expect(rows).toEqual([{ at, day: '1890-06-15' }]);
  }
});

test('after close every connection is gone from the server', async () => {
  const other = await openDatabase(`${place.url}&application_name=closing`.replace(/application_name=[^&]*&/, ''));
  await Promise.all(Array.from({ length: 5 }, () => other.query('select 1')));
  await other.listen('quiet', () => undefined);
  await other.close();
  const left = await operator.query(`select 1 from pg_stat_activity where application_name = 'closing'`);
  expect(left.rowCount).toBe(0);
});
