import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { createPostgresDatabase, type DatabasePlace } from 'kit/testing';
import { startPostgresServer, type PostgresServer } from '../../../../../../test/provision/postgres-server.ts';
import { TcpProxy } from '../../../../../../test/provision/tcp-proxy.ts';
import { createApp } from '../../../app/assemble/create-app.ts';
import type { App } from '../../../app/declare/module.ts';
import { Controller } from '../../../http/compile/controller.ts';
import { route } from '../../../http/declare/route.ts';
import { HealthController } from '../../../middleware/health.ts';
import { allowAny } from '../../../permissions/built-ins.ts';
import type { Database } from '../db.ts';
import { silentLog } from '../../log.ts';
import type { DatabaseOptions } from '../../open/database-options.ts';
import { openDatabase } from '../../open/open-database.ts';
import { OpenedDatabase } from '../../open/opened-database.ts';
import { PostgresEngine } from './engine.ts';

const CONNECTIONS = 3;
/** Enough for a machine that is ten times busier; the long test measures the seconds. */
const SOON = { timeout: 60_000, interval: 20 };

let second: PostgresServer;
let oldPlace: DatabasePlace;
let newPlace: DatabasePlace;
let oldServer: Database;
let newServer: Database;
let proxy: TcpProxy;
let db: Database;

const portOf = (url: string): number => Number(new URL(url).port);
const TABLE = 'create table notes (key text primary key)';

beforeAll(async () => {
  second = await startPostgresServer();
});
afterAll(() => second.stop());
beforeEach(async () => {
  oldPlace = await createPostgresDatabase(inject('postgresUrl'));
  newPlace = await createPostgresDatabase(second.url);
  oldServer = await openDatabase(oldPlace.url);
  newServer = await openDatabase(newPlace.url);
  await oldServer.query(TABLE);
  await newServer.query(TABLE);
  // One address for both: the databases have one name.
  const name = new URL(oldPlace.url).pathname;
  await newServer.close();
  const address = new URL(second.url);
  await renamed(newPlace.url, name);
  address.pathname = name;
  newServer = await openDatabase(address.href);
  proxy = await TcpProxy.start(portOf(oldPlace.url));
});
afterEach(async () => {
  await db?.close();
  await proxy.stop();
  await oldServer.close();
  const name = new URL(oldPlace.url).pathname;
  await newServer.close();
  await renamed(Object.assign(new URL(second.url), { pathname: name }).href, new URL(newPlace.url).pathname);
  await oldPlace.remove();
  await newPlace.remove();
});

async function renamed(url: string, pathname: string): Promise<void> {
  const maintenance = await openDatabase(second.url);
  await maintenance.query(`alter database "${new URL(url).pathname.slice(1)}" rename to "${pathname.slice(1)}"`);
  await maintenance.close();
}

async function open(options: DatabaseOptions = {}): Promise<Database> {
  db = await openDatabase(proxy.through(oldPlace.url), {
    poolMax: CONNECTIONS,
    silenceMsMax: 300,
    connectMsMax: 1000,
    waitMsMax: 30_000,
    ...options,
  });
  return db;
}

/** All connections of the pool are open. */
async function fill(): Promise<void> {
  const opened = Array.from({ length: CONNECTIONS }, () => Promise.withResolvers<void>());
  const all = Promise.all(opened.map(({ promise }) => promise));
  await Promise.all(opened.map(({ resolve }) => db.transaction((tx) => tx.query('select 1').then(() => (resolve(), all)))));
}

let keys = 0;
const write = (): Promise<string> => {
  const key = `k${(keys += 1)}`;
  return db.query('insert into notes (key) values ($1)', [key]).then(() => key);
};
const keysOf = async (server: Database): Promise<string[]> =>
  (await server.query<{ key: string }>('select key from notes order by key')).map(({ key }) => key);

/** What a failover makes of the server that was the primary. */
async function demote(): Promise<void> {
  await oldServer.query(`alter database "${new URL(oldPlace.url).pathname.slice(1)}" set default_transaction_read_only = on`);
  await oldServer.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
  );
  await vi.waitUntil(() => proxy.connectionsTo(portOf(oldPlace.url)) === 0, SOON);
}

describe('a server that takes no changes any more', () => {
  test('is left after the first write that it rejects: the next ones go where the address leads now, although its connections stay open', async () => {
    await open();
    await demote();
    await fill();
    expect(proxy.connectionsTo(portOf(oldPlace.url))).toBe(CONNECTIONS);
    proxy.lead(portOf(second.url));
    await delay(1100); // a connection that is younger than a second has just looked where the address leads
    await expect(write()).rejects.toMatchObject({ code: 'database_read_only' });
    const key = await write();
    expect(await keysOf(newServer)).toEqual([key]);
    await vi.waitUntil(() => proxy.connectionsTo(portOf(oldPlace.url)) === 0, SOON);
  });

  test('… and after one whose error a transaction swallows', async () => {
    await open();
    await demote();
    await fill();
    proxy.lead(portOf(second.url));
    await delay(1100);
    await db
      .transaction((tx) => tx.transaction((savepoint) => savepoint.query(`insert into notes values ('a')`)).catch(() => undefined))
      .catch(() => undefined);
    expect(await keysOf(newServer)).toEqual([]);
    await db.query(`insert into notes values ('b')`);
    expect(await keysOf(newServer)).toEqual(['b']);
  });

  test('is left by readiness alone, which is 200 as soon as the address leads to one that takes them', async () => {
    class NoteController extends Controller {
      add = route.post('/', { permission: allowAny }, async (ctx) => void (await ctx.db.query(`insert into notes values ('x')`)));
    }
    await open();
    const app: App = createApp({
      database: db,
      mount: { '/': { '/notes': NoteController, '/health': HealthController } },
      log: { level: 'silent' },
    });
    onTestFinished(() => app.close());
    const ready = async () => (await app.inject('/health/ready')).statusCode;
    expect(await ready()).toBe(200);
    await demote();
    await fill();
    expect(await ready()).toBe(503);
    proxy.lead(portOf(second.url));
    expect(await ready()).toBe(200);
    expect(await keysOf(db)).toEqual([]);
  });
});

describe('a server that vanishes without a word', () => {
  test('costs the statements under way 503, and no other: its connections are closed, the log says so, and what waited is served', async () => {
    const warned: string[] = [];
    await open({ log: { warn: (_fields, message) => void warned.push(message), error: () => undefined } });
    await fill();
    proxy.silence();
    const lost = Array.from({ length: CONNECTIONS }, write);
    const waiting = Array.from({ length: 10 }, write);
    for (const each of lost) await expect(each).rejects.toMatchObject({ code: 'database_unavailable', status: 503 });
    const kept = await Promise.all(waiting);
    expect(await keysOf(oldServer)).toEqual(kept.toSorted());
    await vi.waitUntil(() => proxy.silentConnections === 0, SOON);
    // Whoever is on call looks for these words: docs/guide/backup-and-failover.md.
    expect(new Set(warned)).toEqual(new Set(['a PostgreSQL connection whose server does not answer was closed']));
  });

  test('… when the address leads to its replacement, and nothing is done twice', async () => {
    await open();
    await fill();
    proxy.silence();
    proxy.lead(portOf(second.url));
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, write));
    const acknowledged = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    expect(acknowledged.length).toBeGreaterThanOrEqual(20 - CONNECTIONS);
    expect(await keysOf(newServer)).toEqual(acknowledged.toSorted());
    expect(await keysOf(oldServer)).toEqual([]);
    await vi.waitUntil(() => proxy.silentConnections === 0, SOON);
  });

  test('connections that nobody used are closed with the first that was', async () => {
    await open();
    await fill();
    proxy.silence();
    await expect(write()).rejects.toMatchObject({ code: 'database_unavailable' });
    await write();
    await vi.waitUntil(() => proxy.silentConnections === 0, SOON);
  });

  test('leaves no locks behind on a server that is still there: its process ends with the connection', async () => {
    await open();
    await oldServer.query(`insert into notes values ('locked')`);
    const cut = db.transaction(async (tx) => {
      await tx.query(`delete from notes where key = 'locked'`);
      proxy.silence();
      await tx.query('select 1');
    });
    await expect(cut).rejects.toMatchObject({ code: 'database_unavailable' });
    await oldServer.query(`delete from notes where key = 'locked'`);
    expect(await oldServer.query(`select pid from pg_stat_activity where datname = current_database() and state like 'idle in%'`)).toEqual(
      [],
    );
  });

  test('in the middle of a long message costs its statement 503: its server waits for the rest, and does not work on it', async () => {
    await open();
    await fill();
    let chunks = 0;
    proxy.onChunk = () => void ((chunks += 1) === 3 && proxy.silence());
    await expect(db.query('insert into notes (key) values ($1)', ['x'.repeat(5_000_000)])).rejects.toMatchObject({
      code: 'database_unavailable',
    });
    proxy.onChunk = undefined;
    await vi.waitUntil(() => proxy.silentConnections === 0, SOON);
    expect(
      await oldServer.query(
        `select pid from pg_stat_activity where query like 'insert into notes%' and pid <> pg_backend_pid() and state <> 'idle'`,
      ),
    ).toEqual([]);
  });

  test('before the first answer of a connection costs its statement 503, and the connection is closed', async () => {
    await open();
    await fill();
    proxy.reset();
    await vi.waitUntil(() => proxy.connectionsTo(portOf(oldPlace.url)) === 0, SOON);
    let chunks = 0;
    // Silent with the first chunk that is no part of opening the connection.
    proxy.onChunk = () => void ((chunks += 1) === 3 && proxy.silence());
    await expect(write()).rejects.toMatchObject({ code: 'database_unavailable' });
    proxy.onChunk = undefined;
    await vi.waitUntil(() => proxy.silentConnections === 0, SOON);
    const key = await write();
    expect(await keysOf(oldServer)).toEqual([key]);
  });

  test('leaves an unknown outcome for the commit that was under way', async () => {
    await open();
    const committing = db.transaction(async (tx) => {
      await tx.query(`insert into notes values ('c')`);
      proxy.silence();
    });
    await expect(committing).rejects.toMatchObject({ code: 'commit_unknown' });
    expect(await keysOf(db)).toEqual([]);
  });

  test('takes no attempt to connect longer than connectMsMax, and statements work as soon as the address leads somewhere', async () => {
    await open({ waitMsMax: 10_000 });
    await fill();
    proxy.lead('nowhere');
    proxy.silence();
    const failed = await Promise.allSettled(Array.from({ length: CONNECTIONS }, write));
    proxy.lead(portOf(second.url));
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    const key = await write().catch(() => write());
    expect(await keysOf(newServer)).toEqual([key]);
  }, 120_000);

  test('does not keep a database from being closed', async () => {
    await open();
    await fill();
    proxy.silence();
    await db.close();
    expect(proxy.silentConnections).toBe(0);
  });

  test('is not mistaken for one that works on a long statement, alone, in a transaction, or waiting for a lock', async () => {
    await open();
    const slow = db.query('select pg_sleep(1.5)');
    const inTransaction = db.transaction((tx) => tx.query('select pg_sleep(1.5)'));
    const other = await openDatabase(oldPlace.url);
    onTestFinished(() => other.close());
    const kept = Promise.withResolvers<string>();
    await other.transaction(async (tx) => {
      await tx.query('lock table notes');
      const waiting = write();
      await Promise.all([slow, inTransaction]);
      await delay(500);
      void waiting.then(kept.resolve, kept.reject);
    });
    const key = await kept.promise;
    expect(await keysOf(oldServer)).toEqual([key]);
  });

  test('is not mistaken for one whose answers take long to arrive', async () => {
    await open({ connectMsMax: 30_000 });
    proxy.delayMs = 700;
    expect(await Promise.all([write(), write()])).toHaveLength(2);
    proxy.delayMs = 0;
  });
});

describe('listening', () => {
  test('goes on at the server that the address leads to, after one that vanished and after one that takes no changes', async () => {
    await open();
    const heard: string[] = [];
    await db.listen('kit_healing', (payload) => heard.push(payload), {
      onDisconnect: () => heard.push('lost'),
      onReconnect: () => heard.push('back'),
    });
    proxy.silence();
    await vi.waitUntil(() => heard.includes('back'), SOON);
    await oldServer.notify(oldServer, 'kit_healing', 'one');
    await vi.waitUntil(() => heard.includes('one'), SOON);
    await oldServer.query(`alter database "${new URL(oldPlace.url).pathname.slice(1)}" set default_transaction_read_only = on`);
    heard.length = 0;
    proxy.reset();
    await vi.waitUntil(() => heard.includes('back'), SOON);
    heard.length = 0;
    proxy.lead(portOf(second.url));
    await vi.waitUntil(() => heard.includes('back'), SOON);
    await newServer.notify(newServer, 'kit_healing', 'two');
    await vi.waitUntil(() => heard.includes('two'), SOON);
    await vi.waitUntil(() => proxy.silentConnections === 0, SOON);
  }, 120_000);
});

test('code that never gives its connection back does not keep a database from being closed, and saves nothing', async () => {
  const warned: string[] = [];
  await open({ waitMsMax: 300, log: { warn: (_fields, message) => void warned.push(message), error: () => undefined } });
  const begun = Promise.withResolvers<void>();
  const forever = Promise.withResolvers<void>();
  const stuck = db.transaction(async (tx) => {
    await tx.query(`insert into notes values ('stuck')`);
    begun.resolve();
    await forever.promise;
  });
  await begun.promise;
  await db.close();
  expect(warned).toEqual(['connections were still in use 300 ms after the database was closed: they are cut']);
  forever.resolve();
  await expect(stuck).rejects.toMatchObject({ code: 'database_unavailable' });
  await vi.waitUntil(() => proxy.connectionsTo(portOf(oldPlace.url)) === 0, SOON);
  expect(await keysOf(oldServer)).toEqual([]);
});

test('a connection that is older than connectionAgeMsMax is closed when it comes back', async () => {
  await open({ poolMax: 1, connectionAgeMsMax: 50 });
  const backend = async () => (await db.query<{ pid: number }>('select pg_backend_pid() as pid, pg_sleep(0.06)'))[0]?.pid;
  expect(await backend()).not.toBe(await backend());
});

describe('a process whose connections are all silent, and are not to be replaced', () => {
  test('is stuck when new ones can be opened, and not while the server works on the statements; its liveness probe says so', async () => {
    await open();
    const engine = new PostgresEngine(proxy.through(oldPlace.url), {
      poolMax: 2,
      prepare: true,
      acquireDeadlineMs: 100,
      connectMsMax: 1000,
      silenceMsMax: 0,
      connectionAgeMsMax: 60_000,
      keepAliveMs: 0,
      stuckMs: 400,
      log: silentLog,
    });
    const app: App = createApp({
      database: new OpenedDatabase(oldPlace.url, engine, {}),
      mount: { '/': { '/health': HealthController } },
      log: { level: 'silent' },
    });
    onTestFinished(() => app.close());
    const live = async () => {
      const response = await app.inject('/health/live');
      return [response.statusCode, response.json<{ status: string }>().status];
    };
    const sleeps = [engine.run('select pg_sleep(2)', []), engine.run('select pg_sleep(2)', [])];
    await delay(1500);
    expect(engine.isStuck).toBe(false);
    expect(await live()).toEqual([200, 'ok']);
    await Promise.all(sleeps);
    proxy.silence();
    const silent = Promise.allSettled([engine.run('select 1', []), engine.run('select 1', [])]);
    await vi.waitUntil(() => engine.isStuck, SOON);
    expect(await live()).toEqual([503, 'stuck']);
    proxy.reset();
    await silent;
    await vi.waitFor(async () => expect(await live()).toEqual([200, 'ok']), SOON);
    await engine.close();
  });
});

describe('several hosts in one URL', () => {
  const addressOf = (ports: readonly (number | string)[], parameters: string): string => {
    const url = new URL(oldPlace.url);
    return `postgres://${url.username}@${ports.map((port) => `127.0.0.1:${port}`).join()}${url.pathname}?${parameters}`;
  };
  const serverOf = async (of: Database): Promise<number> =>
    Number((await of.query<{ port: string }>(`select current_setting('port') as port`))[0]?.port);

  test('connections go to the one that takes changes, also to another than before, and listening follows', async () => {
    const ports = [proxy.port, portOf(second.url)];
    await demote();
    db = await openDatabase(addressOf(ports, 'target_session_attrs=read-write'));
    expect(await serverOf(db)).toBe(portOf(second.url));
    const heard: string[] = [];
    await db.listen('kit_hosts', (payload) => heard.push(payload));
    await newServer.notify(newServer, 'kit_hosts', 'heard');
    await vi.waitUntil(() => heard.includes('heard'), SOON);
    const name = new URL(oldPlace.url).pathname.slice(1);
    await oldServer.query('set default_transaction_read_only = off');
    await oldServer.query(`alter database "${name}" reset default_transaction_read_only`);
    await newServer.query(`alter database "${name}" set default_transaction_read_only = on`);
    await newServer.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    );
    await vi.waitFor(async () => expect(await serverOf(db)).toBe(portOf(oldPlace.url)), SOON);
    await vi.waitFor(async () => {
      await oldServer.notify(oldServer, 'kit_hosts', 'here');
      expect(heard).toContain('here');
    }, SOON);
  });

  test('one that is down or does not answer is passed over, with any session', async () => {
    proxy.lead('nowhere');
    db = await openDatabase(addressOf([1, proxy.port, portOf(second.url)], 'connect_timeout=1'));
    expect(await serverOf(db)).toBe(portOf(second.url));
  });

  test('none that is right is an error that says what was asked for, and prefer-standby takes what there is', async () => {
    const ports = [portOf(oldPlace.url), portOf(second.url)];
    await expect(openDatabase(addressOf(ports, 'target_session_attrs=standby'))).rejects.toMatchObject({
      code: 'database_unavailable',
      message: 'no host of the database URL is standby: target_session_attrs=standby',
    });
    db = await openDatabase(addressOf(ports, 'target_session_attrs=prefer-standby'));
    expect(await serverOf(db)).toBe(portOf(oldPlace.url));
  });

  test('a wrong database is the answer of all of them: no other host is tried, as in libpq', async () => {
    await open();
    const url = new URL(addressOf([proxy.port], ''));
    url.pathname = '/missing';
    await expect(openDatabase(url.href.replace(String(proxy.port), `${proxy.port},127.0.0.1:${portOf(second.url)}`))).rejects.toThrow(
      '"missing" does not exist',
    );
  });
});
