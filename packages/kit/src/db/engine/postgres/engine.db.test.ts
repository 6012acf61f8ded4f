import { type AddressInfo, connect, createServer } from 'node:net';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createPostgresDatabase, type DatabasePlace } from 'kit/testing';
import type { Database, Db } from '../db.ts';
import { openDatabase } from '../../open/open-database.ts';
import { sendStatement } from '../handle.ts';
import { countQueries } from '../query-observer.ts';
import type { QuerySettings } from './client-queries.ts';
import { StatementNames } from './statement-names.ts';
import { PostgresTransaction } from './transaction.ts';

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

test('a statement with more parameters than the protocol can count is rejected before it is sent, and the connection works on', async () => {
  const numbers = Array.from({ length: 65_536 }, (_, index) => index);
  const text = `select count(*) as n from notes where id in (${numbers.map((index) => `$${index + 1}::integer`).join()})`;
  const message = /65536 parameters; PostgreSQL takes 65535/;
  await expect(db.query(text, numbers)).rejects.toThrow(message);
  await db.transaction(async (tx) => {
    const backend = await backendOf(tx);
    await expect(tx.query(text, numbers)).rejects.toThrow(message);
    expect(await backendOf(tx)).toBe(backend);
  });
  await expect(db.stream(text, numbers)[Symbol.asyncIterator]().next()).rejects.toThrow(message);
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
    await expect(clash).rejects.toMatchObject({ code: 'write_conflict', status: 409, cause: { code: '40001' } });
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

  test('one that a pooler prepared again with other columns is refused, not read under the names of the old ones', async () => {
    const own = await openDatabase(place.url, { poolMax: 1 });
    try {
      const text = 'select id, value from notes where id = $1';
      for (const _ of [1, 2, 3]) await own.query(text, [-1]);
      await own.query('insert into notes (id, value) values (-1, 7)');
      const [held] = await own.query<{ name: string }>('select name from pg_prepared_statements where statement = $1', [text]);
      await own.query(`deallocate ${held?.name}`);
      await own.query(`prepare ${held?.name} as select value, 'new' as added, id from notes where id = $1`);
      await expect(own.query(text, [-1])).rejects.toThrow('columns of a prepared statement changed');
      expect(await own.query(text, [-1])).toEqual([{ value: 7, added: 'new', id: -1 }]);
    } finally {
      await own.query('delete from notes where id = -1');
      await own.close();
    }
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
    const opened = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
    const all = Promise.all(opened.map(({ promise }) => promise));
    // All connections are open before the statements: one that is free sooner would serve the next.
    await Promise.all(opened.map(({ resolve }) => unnamed.transaction((tx) => tx.query('select 1').then(() => (resolve(), all)))));
    const rows = (await Promise.all([short(unnamed, 1), short(unnamed, 2), short(unnamed, 3)])).flat();
    expect(new Set(rows.map(({ pid }) => pid)).size).toBe(3);
    await unnamed.close();
  });
});

/** How often data was handed to the socket: what was collected goes by `_writev`, a single message by `_write`. */
function countWrites({ connection: { stream } }: pg.PoolClient): () => number {
  let writes = 0;
  for (const name of ['_write', '_writev'] as const) {
    const write = stream[name]?.bind(stream) as ((...values: unknown[]) => void) | undefined;
    if (write === undefined) continue;
    stream[name] = (...values: unknown[]) => {
      writes += 1;
      write(...values);
    };
  }
  return () => writes;
}

describe('statements whose answer is not waited for', () => {
  const add = (tx: Db, id: number) => sendStatement(tx, 'insert into notes (id) values ($1)', [id]);
  const saved = async (...ids: number[]) =>
    (await db.query<{ id: number }>('select id from notes where id = any($1) order by id', [ids])).map(({ id }) => id);

  test('are part of the transaction: the next statement sees them, and they are committed or rolled back with it', async () => {
    await db.transaction(async (tx) => {
      await add(tx, 3001);
      expect(await tx.query('select id from notes where id = 3001')).toEqual([{ id: 3001 }]);
      await add(tx, 3002);
    });
    const undone = db.transaction(async (tx) => {
      await add(tx, 3003);
      throw new Error('undo');
    });
    await expect(undone).rejects.toThrow('undo');
    await db.transaction(async (tx) => {
      await expect(
        tx.transaction(async (savepoint) => {
          await add(savepoint, 3004);
          throw new Error('undo');
        }),
      ).rejects.toThrow('undo');
      await add(tx, 3005);
    });
    expect(await saved(3001, 3002, 3003, 3004, 3005)).toEqual([3001, 3002, 3005]);
  });

  test('one that fails fails the commit with its own error, and nothing is saved', async () => {
    const failing = db.transaction(async (tx) => {
      await tx.query('insert into notes (id) values (3010)');
      await add(tx, 3010);
    });
    await expect(failing).rejects.toMatchObject({ code: '23505' });
    const later = db.transaction(async (tx) => {
      await tx.query('insert into notes (id) values (3011)');
      await add(tx, 3011);
      await new Promise((done) => setTimeout(done, 20));
    });
    await expect(later).rejects.toMatchObject({ code: '23505' });
    expect(await saved(3010, 3011)).toEqual([]);
  });

  test('one that fails fails the next statement with its own error, and the commit although that was swallowed', async () => {
    const failing = db.transaction(async (tx) => {
      await tx.query('insert into notes (id) values (3020)');
      await add(tx, 3020);
      await expect(tx.query('select 1')).rejects.toMatchObject({ code: '23505' });
      await expect(tx.query('select 1')).rejects.toMatchObject({ code: '23505' });
    });
    await expect(failing).rejects.toMatchObject({ code: '23505' });
    expect(await saved(3020)).toEqual([]);
  });

  test('one that fails in a savepoint fails the savepoint, and the transaction goes on without it', async () => {
    await db.transaction(async (tx) => {
      await add(tx, 3030);
      const failing = tx.transaction(async (savepoint) => {
        await savepoint.query('insert into notes (id) values (3031)');
        await add(savepoint, 3030);
      });
      await expect(failing).rejects.toMatchObject({ code: '23505' });
      await add(tx, 3032);
    });
    expect(await saved(3030, 3031, 3032)).toEqual([3030, 3032]);
  });

  test('after a statement that failed and was swallowed nothing is saved, as always', async () => {
    const failing = db.transaction(async (tx) => {
      await tx.query('select 1 / 0').catch(() => undefined);
      await add(tx, 3040);
    });
    await expect(failing).rejects.toMatchObject({ code: 'transaction_aborted' });
    expect(await saved(3040)).toEqual([]);
  });

  test('a value that cannot be sent is refused at once', async () => {
    await db.transaction(async (tx) => {
      await expect(sendStatement(tx, 'insert into notes (id) values ($1)', [Number.NaN])).rejects.toMatchObject({
        code: 'value_not_storable',
      });
      await add(tx, 3050);
    });
    expect(await saved(3050)).toEqual([3050]);
  });

  /** A transaction on a client of its own, whose connection a test can look into. */
  async function onClient(work: (client: pg.PoolClient, settings: QuerySettings, tx: PostgresTransaction) => Promise<void>): Promise<void> {
    const pool = new pg.Pool({ connectionString: place.url, max: 1, pipeline: true });
    const client = await pool.connect();
    const settings = { names: new StatementNames() };
    const tx = new PostgresTransaction(client, settings);
    await tx.run('select 1', []);
    try {
      await work(client, settings, tx);
    } finally {
      await tx.rollback();
      await pool.end();
    }
  }
  const text = 'insert into notes (id) values ($1)';

  test('go out in one write with the commit', () =>
    onClient(async (client, _settings, tx) => {
      const writes = countWrites(client);
      tx.send(text, [3060]);
      tx.send(text, [3061]);
      await Promise.resolve();
      await tx.commit();
      expect(writes()).toBe(1);
      expect(await saved(3060, 3061)).toEqual([3060, 3061]);
    }));

  test('one that the driver cannot send fails the commit', () =>
    onClient(async (client, { names }, tx) => {
      await tx.run('insert into notes (id) values (3062)', []);
      await tx.run(text, [3063]);
      // The driver believes that the connection has another statement under the name of this one, and refuses to mix them up.
      const name = names?.nameOf(text) ?? '';
      (client.connection as unknown as { readonly parsedStatements: Record<string, string> }).parsedStatements[name] = 'select 1';
      tx.send(text, [3064]);
      await expect(tx.commit()).rejects.toThrow('Prepared statements must be unique');
      await tx.rollback();
      expect(await saved(3062, 3063, 3064)).toEqual([]);
    }));

  test('each is counted as the one statement it is, also when it fails', async () => {
    const { queries } = await countQueries(() =>
      db.transaction(async (tx) => {
        await add(tx, 3070);
        await tx.query('select 1');
        await add(tx, 3071);
      }),
    );
    expect(queries.map(({ sql, rowCount }) => [sql.slice(0, 6), rowCount])).toEqual([
      ['insert', 1],
      ['select', 1],
      ['insert', 1],
    ]);
    const failed = await countQueries(() => db.transaction((tx) => add(tx, 3070)).catch(() => undefined));
    expect(failed.queries).toMatchObject([{ failed: true, errorType: '23505' }]);
  });

  test('without prepared statements they work as well', async () => {
    const unnamed = await openDatabase(place.url, { poolMax: 1, prepare: false });
    await unnamed.transaction((tx) => add(tx, 3080));
    await expect(unnamed.transaction((tx) => add(tx, 3080))).rejects.toMatchObject({ code: '23505' });
    await unnamed.close();
    expect(await saved(3080)).toEqual([3080]);
  });

  test('a connection that is lost with them leaves nothing saved, and the pool healthy', async () => {
    const lost = db.transaction(async (tx) => {
      await tx.query('insert into notes (id) values (3090)');
      await terminate(await backendOf(tx));
      await add(tx, 3091);
    });
    await expect(lost).rejects.toMatchObject({ code: expect.stringMatching(/^(commit_unknown|database_unavailable)$/) as string });
    expect(await saved(3090, 3091)).toEqual([]);
  });
});

describe('a transaction whose statements are not waited for', () => {
  const INSERT = 'insert into notes (id) values ($1)';
  const ADD = 'insert into notes (id, value) values ($1, $2)';
  const saved = async (...ids: number[]) =>
    (await operator.query<{ id: number }>('select id from notes where id = any($1) order by id', [ids])).rows.map(({ id }) => id);

  async function onClients(
    work: (begin: () => Promise<{ tx: PostgresTransaction; client: pg.PoolClient; names: StatementNames }>) => Promise<void>,
  ) {
    const pool = new pg.Pool({ connectionString: place.url, max: 1, pipeline: true });
    const names = new StatementNames();
    try {
      await work(async () => {
        const client = await pool.connect();
        return { tx: new PostgresTransaction(client, { names }), client, names };
      });
    } finally {
      await pool.end();
    }
  }

  test('saves nothing when one of them fails, whichever it is, with its error; connection and statements work on', () =>
    onClients(async (begin) => {
      await operator.query('insert into notes (id) values (5010)');
      for (const place of [0, 1, 2]) {
        for (let time = 0; time < 3; time += 1) {
          const { tx } = await begin();
          // Each place has a text of its own, so that it is parsed in the first round.
          for (const index of [0, 1, 2]) tx.send(`/* ${place} ${index} */ ${INSERT}`, [index === place ? 5010 : 5011 + index]);
          await expect(tx.commit()).rejects.toMatchObject({ code: '23505' });
          await tx.rollback();
          expect(await saved(5011, 5012, 5013)).toEqual([]);
        }
        const { tx } = await begin();
        for (const index of [0, 1, 2]) tx.send(`/* ${place} ${index} */ ${INSERT}`, [5020 + 10 * place + index]);
        await tx.commit();
        expect(await saved(5020 + 10 * place, 5021 + 10 * place, 5022 + 10 * place)).toHaveLength(3);
      }
    }));

  test('saves nothing when a rule that is checked at the commit is broken', async () => {
    await db.query(
      'create table deferred_notes (id integer primary key, parent integer references notes (id) deferrable initially deferred)',
    );
    const failing = db.transaction(async (tx) => {
      await sendStatement(tx, INSERT, [5050]);
      await sendStatement(tx, 'insert into deferred_notes (id, parent) values ($1, $2)', [1, -7]);
    });
    await expect(failing).rejects.toMatchObject({ code: '23503' });
    expect(await saved(5050)).toEqual([]);
    await db.transaction(async (tx) => {
      await sendStatement(tx, INSERT, [5051]);
      await sendStatement(tx, 'insert into deferred_notes (id, parent) values ($1, $2)', [1, 5051]);
    });
  });

  test('is an ordinary one as soon as something is waited for, and when there are many of them', async () => {
    await db.transaction(async (tx) => {
      await sendStatement(tx, INSERT, [5070]);
      expect(await tx.query('select id from notes where id = $1', [5070])).toHaveLength(1);
      await sendStatement(tx, INSERT, [5071]);
    });
    await db.transaction(async (tx) => {
      await sendStatement(tx, INSERT, [5072]);
      await tx.transaction((savepoint) => sendStatement(savepoint, INSERT, [5073]));
    });
    const many = Array.from({ length: 120 }, (_, index) => 5100 + index);
    await db.transaction(async (tx) => {
      for (const id of many) await sendStatement(tx, INSERT, [id]);
    });
    expect(await saved(5070, 5071, 5072, 5073, ...many)).toHaveLength(4 + many.length);
    const undone = db.transaction(async (tx) => {
      for (const id of [...many, 5300]) await sendStatement(tx, INSERT, [id + 1000]);
      await sendStatement(tx, INSERT, [5100]);
    });
    await expect(undone).rejects.toMatchObject({ code: '23505' });
    expect(await saved(...many.map((id) => id + 1000), 6300)).toEqual([]);
  });

  test('keeps the isolation that was asked for', async () => {
    const failing = db.transaction((tx) => sendStatement(tx, INSERT, [5400]), { readOnly: true });
    await expect(failing).rejects.toMatchObject({ code: '25006' });
    await db.query('create table if not exists isolations (level text)');
    const note = `insert into isolations select current_setting('transaction_isolation') where $1::int = 1`;
    await db.transaction((tx) => sendStatement(tx, note, [1]), { isolation: 'serializable' });
    await db.transaction((tx) => sendStatement(tx, note, [1]));
    expect(await db.query('select level from isolations')).toEqual([{ level: 'serializable' }, { level: 'read committed' }]);
  });

  test('never runs another statement under the name of one of them', () =>
    onClients(async (begin) => {
      const first = await begin();
      first.tx.send(INSERT, [5500]);
      first.tx.send(ADD, [5501, 1]);
      await first.tx.commit();
      const { tx, client, names } = await begin();
      (client.connection as unknown as { readonly parsedStatements: Record<string, string> }).parsedStatements[names.nameOf(ADD) ?? ''] =
        'select 1';
      tx.send(INSERT, [5502]);
      tx.send(ADD, [5503, 1]);
      await expect(tx.commit()).rejects.toThrow('Prepared statements must be unique');
      await tx.rollback();
      expect(await saved(5502, 5503)).toEqual([]);
    }));

  test('is not saved when the connection is lost while one of them waits, and the pool goes on', async () => {
    const holder = new pg.Client({ connectionString: place.url });
    await holder.connect();
    const own = await openDatabase(place.url, { poolMax: 1 });
    try {
      await holder.query('begin; insert into notes (id) values (5600)');
      const pid = (await own.query<{ pid: number }>('select pg_backend_pid() as pid'))[0]?.pid ?? 0;
      // Waits for the row of the same key, so that its answer is outstanding.
      const lost = own.transaction(async (tx) => {
        await sendStatement(tx, INSERT, [5601]);
        await sendStatement(tx, INSERT, [5600]);
      });
      const outcome = lost.catch((error: unknown) => error);
      await expect
        .poll(async () => (await operator.query('select 1 from pg_locks where pid = $1 and not granted', [pid])).rowCount)
        .toBeGreaterThan(0);
      await terminate(pid);
      expect(await outcome).toMatchObject({ code: 'database_unavailable' });
      await holder.query('rollback');
      expect(await saved(5600, 5601)).toEqual([]);
      // The pool goes on with another connection.
      await own.transaction((tx) => sendStatement(tx, INSERT, [5602]));
      expect(await saved(5602)).toEqual([5602]);
    } finally {
      await holder.end();
      await own.close();
    }
  });
});

describe('BEGIN goes out with the first statement', () => {
  const INSERT = 'insert into notes (id) values ($1)';
  const saved = async (...ids: number[]) =>
    (await operator.query<{ id: number }>('select id from notes where id = any($1) order by id', [ids])).rows.map(({ id }) => id);

  test('in one write, and a transaction without statements sends nothing', async () => {
    const pool = new pg.Pool({ connectionString: place.url, max: 1, pipeline: true });
    const client = await pool.connect();
    const settings = { names: new StatementNames() };
    const writes = countWrites(client);
    await new PostgresTransaction(client, settings).commit();
    expect(writes()).toBe(0);
    const tx = new PostgresTransaction(await pool.connect(), settings);
    await tx.run(INSERT, [4000]);
    expect(writes()).toBe(1);
    await tx.commit();
    expect(writes()).toBe(2);
    await pool.end();
    expect(await saved(4000)).toEqual([4000]);
  });

  test('whatever that is: named or not, without parameters, several at once, a savepoint, a stream, one that is not awaited', async () => {
    const first: readonly ((tx: Db, id: number) => Promise<unknown>)[] = [
      (tx, id) => tx.query(INSERT, [id]),
      (tx, id) => tx.query(`insert into notes (id) values (${id})`),
      (tx, id) => Promise.all([tx.query(INSERT, [id]), tx.query('select 1'), tx.query('select $1::int', [1])]),
      (tx, id) => tx.transaction((savepoint) => savepoint.query(INSERT, [id])),
      async (tx, id) => {
        for await (const rows of tx.stream('select generate_series(1, $1::int) as n', [3])) expect(rows).toHaveLength(3);
        await tx.query(INSERT, [id]);
      },
      (tx, id) => sendStatement(tx, INSERT, [id]),
      (tx, id) => Promise.all([tx.query('select $1::int', [1]), sendStatement(tx, INSERT, [id])]),
      (tx, id) => sendStatement(tx, `insert into notes (id) values (${id})`, []),
    ];
    for (const [index, statement] of first.entries()) {
      const [kept, undone] = [4100 + index, 4200 + index];
      await db.transaction((tx) => statement(tx, kept));
      const failing = db.transaction(async (tx) => {
        await statement(tx, undone);
        throw new Error('no');
      });
      await expect(failing).rejects.toThrow('no');
      expect([index, await saved(kept, undone)]).toEqual([index, [kept]]);
    }
  });

  test('what still waits for BEGIN when the transaction ends never runs', async () => {
    const ids = Array.from({ length: 30 }, (_, index) => 4600 + index);
    for (const id of ids) {
      const late: Promise<unknown>[] = [];
      const failing = db.transaction(async (tx) => {
        const before = id % 3 === 0 ? [] : [id % 3 === 1 ? tx.query('select 1') : tx.query('select $1::int', [1])];
        late.push(Promise.allSettled([...before, tx.query(`insert into notes (id) values (${id})`)]));
        throw new Error('no');
      });
      await expect(failing).rejects.toThrow('no');
      await Promise.all(late);
    }
    expect(await saved(...ids)).toEqual([]);
  });

  test('with the isolation that was asked for', async () => {
    const read = (name: string) => (tx: Db) => tx.query('select current_setting($1) as value', [name]);
    expect(await db.transaction(read('transaction_isolation'), { isolation: 'serializable' })).toEqual([{ value: 'serializable' }]);
    expect(await db.transaction(read('transaction_read_only'), { readOnly: true })).toEqual([{ value: 'on' }]);
    await expect(db.transaction((tx) => tx.query(INSERT, [4300]), { readOnly: true })).rejects.toMatchObject({ code: '25006' });
  });

  test('a first statement that fails rolls back, and its connection and its text work on', async () => {
    const own = await openDatabase(place.url, { poolMax: 1 });
    try {
      for (let time = 0; time < 3; time += 1) {
        const failing = own.transaction(async (tx) => {
          await tx.query('insert into later (id) values ($1)', [time]).catch(() => undefined);
          await tx.query(INSERT, [4400]);
        });
        await expect(failing).rejects.toMatchObject({ code: 'transaction_aborted' });
      }
      await own.query('create table later (id integer)');
      await own.transaction((tx) => tx.query('insert into later (id) values ($1)', [9]));
      expect(await own.query('select id from later')).toEqual([{ id: 9 }]);
      expect(await saved(4400)).toEqual([]);
    } finally {
      await own.close();
    }
  });

  test('when it fails, no statement of the transaction runs, and the next transaction works', async () => {
    const proxy = await spoilingProxy(place.url);
    const own = await openDatabase(proxy.url, { poolMax: 1 });
    try {
      const write = (id: number): Promise<unknown>[] => [
        own.transaction((tx) => tx.query(INSERT, [id])),
        own.transaction((tx) => Promise.all([tx.query(INSERT, [id]), tx.query(INSERT, [id + 1]), tx.query('select 1')])),
        own.transaction((tx) => Promise.all([tx.query('select 1'), tx.query(INSERT, [id])])),
        own.transaction(async (tx) => {
          await sendStatement(tx, INSERT, [id]);
          await tx.query(INSERT, [id + 1]);
        }),
        own.transaction(async (tx) => {
          await tx.query(INSERT, [id]).catch(() => undefined);
          await tx.query(INSERT, [id + 1]);
        }),
        own.transaction(async (tx) => {
          await tx.query(INSERT, [id]).catch(() => undefined);
          await sendStatement(tx, INSERT, [id + 1]);
        }),
        own.transaction(async (tx) => {
          await tx.query(INSERT, [id]).catch(() => undefined);
        }),
      ];
      proxy.spoils = 'begin';
      for (const result of await Promise.allSettled(write(4500)))
        expect(result).toMatchObject({ status: 'rejected', reason: { code: '42601' } });
      expect(await saved(4500, 4501)).toEqual([]);
      proxy.spoils = '';
      await own.transaction((tx) => tx.query(INSERT, [4510]));
      expect(await saved(4510)).toEqual([4510]);
    } finally {
      await own.close();
      proxy.close();
    }
  });

  test.each([
    [
      'a stream that was read',
      async (own: Database) => {
        for await (const rows of own.stream('select generate_series(1, 9) as n', [], 2)) if (rows.length > 0) break;
      },
    ],
    [
      'a stream with a deadline',
      async (own: Database) => {
        const long = { deadlineMs: 60_000 };
        for await (const rows of own.stream('select generate_series(1, 9) as n', [], 2, { long })) if (rows.length > 0) break;
      },
    ],
    [
      'a transaction',
      async (own: Database) => {
        await expect(own.transaction((tx) => tx.query('select 1 / 0'))).rejects.toMatchObject({ code: '22012' });
      },
    ],
  ])('when the ROLLBACK of %s fails, its connection is not used again', async (_name, run) => {
    const proxy = await spoilingProxy(place.url);
    const own = await openDatabase(proxy.url, { poolMax: 1 });
    try {
      proxy.spoils = 'rollback';
      await run(own);
      proxy.spoils = '';
      expect(await own.query('select 1 as one')).toEqual([{ one: 1 }]);
    } finally {
      await own.close();
      proxy.close();
    }
  });

  /** A way to the server on which a word can be made one that the server does not understand. */
  async function spoilingProxy(url: string) {
    const target = new URL(url);
    const server = createServer((socket) => {
      const upstream = connect(Number(target.port), target.hostname);
      socket.on('data', (data) => {
        const word = proxy.spoils;
        if (word === '') upstream.write(data);
        else upstream.write(Buffer.from(data.toString('latin1').replaceAll(`${word}\0`, `${word.slice(0, -1)}_\0`), 'latin1'));
      });
      upstream.pipe(socket);
      socket.on('close', () => upstream.destroy()).on('error', () => undefined);
      upstream.on('close', () => socket.destroy()).on('error', () => undefined);
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const own = new URL(url);
    own.port = String((server.address() as AddressInfo).port);
    const proxy = { url: own.href, spoils: '', close: () => void server.close() };
    return proxy;
  }
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
