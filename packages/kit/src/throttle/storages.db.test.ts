import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterAll, describe, expect, inject, test } from 'vitest';
import { createPostgresDatabase } from 'kit/testing';
import { lockRows } from '../../test/lock-rows.ts';
import { startRedisServer, type RedisServer } from '../../../../test/provision/redis-server.ts';
import { migrate, openDatabase, type Database } from '../db/index.ts';
import { initial } from './migrations/0001_throttles.ts';
import { memoryStorage } from './memory-storage.ts';
import { parseRate } from './rate.ts';
import { redisStorage } from './redis-storage.ts';
import { sqlStorage } from './sql-storage.ts';
import type { ThrottleStorage } from './storage.ts';

/** A real storage; `url` when other processes can share it. */
interface Opened {
  readonly storage: ThrottleStorage;
  readonly url?: string;
  readonly db?: Database;
}

const closers: (() => Promise<unknown>)[] = [];
let redis: Promise<RedisServer> | undefined;

afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

// A storage that falls back to something else would pass these tests without being tested.
const strict = { onFailure: 'refuse', timeoutMs: 60_000 } as const;

async function redisUrl(): Promise<string> {
  if (redis === undefined) {
    redis = startRedisServer();
    const server = redis;
    closers.push(async () => (await server).stop());
  }
  return (await redis).url;
}

async function sql(url: string): Promise<Opened> {
  const db = await openDatabase(url);
  closers.push(() => db.close());
  await migrate(db, [{ name: 'kit', migrations: [initial] }]);
  return { storage: sqlStorage({ db, ...strict }), url, db };
}

const openers: Record<string, () => Promise<Opened>> = {
  memory: () => Promise.resolve({ storage: memoryStorage() }),
  async SQLite() {
    const folder = await mkdtemp(join(tmpdir(), 'kit-throttle-'));
    closers.push(() => rm(folder, { recursive: true, force: true }));
    return sql(`sqlite:${join(folder, 'throttle.db')}`);
  },
  async PostgreSQL() {
    const database = await createPostgresDatabase(inject('postgresUrl'));
    closers.push(() => database.remove());
    return sql(database.url);
  },
  async 'Redis through ioredis'() {
    const url = await redisUrl();
    const client = new Redis(url);
    closers.push(() => client.quit());
    return { storage: redisStorage(client, { ...strict, prefix: 'a:' }), url };
  },
  async 'Redis through redis'() {
    const url = await redisUrl();
    const client = createClient({ url });
    await client.connect();
    closers.push(() => client.close());
    return { storage: redisStorage(client, { ...strict, prefix: 'b:' }) };
  },
};

const START_MS = Date.UTC(2026, 0, 1);
const at = (ms: number): Date => new Date(START_MS + ms);
let lastKey = 0;
const newKey = (): string => `key-${(lastKey += 1)}`;

describe.each(Object.keys(openers))('the %s storage', (name) => {
  let opening: Promise<Opened> | undefined;
  const open = (): Promise<Opened> => (opening ??= openers[name]?.() ?? Promise.reject(new Error(name)));

  test.each([1, 7, 60])('admits exactly %i of 120 parallel requests', async (limit) => {
    const { storage } = await open();
    const key = newKey();
    const decisions = await Promise.all(Array.from({ length: 120 }, () => storage.take(key, parseRate(`${limit}/hour`), at(0))));
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(limit);
    expect(new Set(decisions.filter(({ allowed }) => allowed).map(({ remaining }) => remaining)).size).toBe(limit);
  });

  test('refused requests cost nothing', async () => {
    const { storage } = await open();
    const key = newKey();
    const rate = parseRate('2/min');
    for (let i = 0; i < 2; i += 1) expect((await storage.take(key, rate, at(0))).allowed).toBe(true);
    for (let i = 0; i < 50; i += 1) expect((await storage.take(key, rate, at(1000))).allowed).toBe(false);
    expect(await storage.take(key, rate, at(1000))).toMatchObject({ retryAfterMs: 29_000, remaining: 0, resetMs: 59_000 });
    expect((await storage.take(key, rate, at(30_000))).allowed).toBe(true);
  });

  test('what is given back can be used again', async () => {
    const { storage } = await open();
    const key = newKey();
    const rate = parseRate('3/min');
    for (let i = 0; i < 3; i += 1) await storage.take(key, rate, at(0));
    await storage.giveBack(key, rate, at(0), 2);
    expect((await storage.take(key, rate, at(0), 2)).allowed).toBe(true);
    expect((await storage.take(key, rate, at(0))).allowed).toBe(false);
    await storage.giveBack(newKey(), rate, at(0));
  });

  test('budgets of different keys are independent', async () => {
    const { storage } = await open();
    const [a, b] = [newKey(), newKey()];
    expect((await storage.take(a, parseRate('1/hour'), at(0))).allowed).toBe(true);
    expect((await storage.take(b, parseRate('1/hour'), at(0))).allowed).toBe(true);
    expect((await storage.take(a, parseRate('1/hour'), at(0))).allowed).toBe(false);
  });

  test('decides every sequence of requests as the memory storage does', async () => {
    const { storage } = await open();
    // Rates whose interval is not an integer, over a stretch in which budgets fill, drain and come back. Time goes on
    // from one sequence to the next, as it does for the pruning of rows.
    let nowMs = 0;
    const steps = fc.array(fc.record({ waitMs: fc.integer({ min: 0, max: 9000 }), cost: fc.integer({ min: 1, max: 3 }) }), {
      maxLength: 25,
    });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('3/min', '7/min', '11/13s', '999/hour'), steps, async (text, sequence) => {
        const [rate, model, key] = [parseRate(text), memoryStorage(), newKey()];
        for (const { waitMs, cost } of sequence) {
          nowMs += waitMs;
          const [given, expected] = [await storage.take(key, rate, at(nowMs), cost), await model.take(key, rate, at(nowMs), cost)];
          expect(given).toEqual(expected);
        }
      }),
      { numRuns: 30 },
    );
  });

  test('a budget written under a clock that was set back does not lock its caller out', async () => {
    const { storage } = await open();
    const key = newKey();
    await storage.take(key, parseRate('1/hour'), at(365 * 86_400_000));
    expect((await storage.take(key, parseRate('1/hour'), at(0))).allowed).toBe(true);
  });
});

describe.each(['SQLite', 'PostgreSQL', 'Redis through ioredis'])('two processes on one %s', (name) => {
  test('admit together exactly the limit', async () => {
    const { url = '' } = (await openers[name]?.()) ?? {};
    const key = newKey();
    const children = [1, 2].map(() => startTaking(url, key, '25/hour', 60));
    await Promise.all(children.map(({ ready }) => ready));
    for (const child of children) child.go();
    const admitted = await Promise.all(children.map(({ result }) => result));
    expect(admitted.reduce((a, b) => a + b, 0)).toBe(25);
  });
});

describe.each(['SQLite', 'PostgreSQL'])('rows on %s', (name) => {
  test('of budgets that are whole again are deleted, the others stay', async () => {
    const { db, storage } = (await openers[name]?.()) ?? {};
    if (db === undefined || storage === undefined) throw new Error('no database');
    await storage.take('old', parseRate('10/s'), at(0));
    await storage.take('live', parseRate('1/day'), at(0));
    await storage.take('new', parseRate('10/s'), at(120_000));
    await storage.close?.();
    const rows = await db.query<{ key: string }>('select key from kit_throttles order by key');
    expect(rows.map(({ key }) => key)).toEqual(['live', 'new']);
  });
});

test('a budget that another transaction has locked does not hold up the clean-up of others', async () => {
  const opened = await openers['PostgreSQL']?.();
  const db = opened?.db;
  if (db === undefined) throw new Error('no database');
  const open = async (now: Date, key: string) => {
    // Each storage cleans up with its first request.
    const storage = sqlStorage({ db, ...strict });
    await storage.take(key, parseRate('5/s'), now);
    await storage.close?.();
  };
  await open(at(0), 'locked');
  await open(at(0), 'other');
  const keys = async () => (await db.query<{ key: string }>('select key from kit_throttles order by key')).map(({ key }) => key);
  const release = await lockRows(db, 'kit_throttles', ['locked'], 'key');
  await open(at(86_400_000), 'late');
  expect(await keys()).toEqual(['late', 'locked']);
  await release();
  await open(at(86_400_000), 'later');
  expect(await keys()).toEqual(['late', 'later']);
});

test('a Redis key lives no longer than its budget needs', async () => {
  const client = new Redis(await redisUrl());
  try {
    await redisStorage(client, { ...strict, prefix: 'ttl:' }).take('k', parseRate('10/min'), new Date());
    const ttlMs = await client.pttl('ttl:k');
    expect(ttlMs).toBeGreaterThan(0);
    expect(ttlMs).toBeLessThanOrEqual(6000);
  } finally {
    await client.quit();
  }
});

test('when Redis goes away each process limits on its own', async () => {
  const server = await startRedisServer();
  const client = new Redis(server.url, { retryStrategy: () => 20, maxRetriesPerRequest: null });
  client.on('error', () => {});
  try {
    // Long enough for an answer of Redis on a busy machine: one that comes too late would count here.
    const storage = redisStorage(client, { timeoutMs: 2000 });
    const rate = parseRate('2/hour');
    expect((await storage.take('k', rate, at(0))).allowed).toBe(true);
    await server.stop();
    const down = [];
    for (let i = 0; i < 4; i += 1) down.push((await storage.take('k', rate, at(0))).allowed);
    expect(down).toEqual([true, true, false, false]);
  } finally {
    client.disconnect();
    await server.stop();
  }
});

interface Taking {
  readonly ready: Promise<void>;
  readonly result: Promise<number>;
  go(): void;
}

function startTaking(url: string, key: string, rate: string, takes: number): Taking {
  const script = join(import.meta.dirname, '../../test/take-from-throttle.ts');
  const child = spawn(process.execPath, ['--conditions=source', script, url, key, rate, String(takes), String(START_MS)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error('the process ended early');
    return value;
  };
  const ready = line().then(() => undefined);
  return { ready, result: ready.then(async () => Number(await line())), go: () => void child.stdin.write('go\n') };
}
