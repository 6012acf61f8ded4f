import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startRedisServer, type RedisServer } from '../../../../../../test/provision/redis-server.ts';
import type { Database } from '../../../db/engine/db.ts';
import { migrate } from '../../../db/migrations/migrate.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { calendarPeriod, parseQuota } from '../../../throttle/quota.ts';
import type { RedisClient } from '../../../throttle/redis-client.ts';
import { requestMigrations } from '../migrations/all.ts';
import { quotaCount, type QuotaCount, type Taken } from './quota-store.ts';
import { RedisCounter } from './redis-counter.ts';

/** A connection to Redis that can be cut and restored. */
async function cuttable(url: string) {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server: Server = createServer((socket) => {
    if (isCut) {
      socket.destroy();
      return;
    }
    const onward = connect(Number(port), hostname);
    for (const each of [socket, onward]) {
      sockets.add(each);
      each.on('error', () => undefined);
      each.on('close', () => [socket, onward].forEach((end) => end.destroy()));
    }
    socket.pipe(onward).pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address() as { port: number };
  return {
    url: `redis://127.0.0.1:${address.port}`,
    cut() {
      isCut = true;
      for (const socket of sockets) socket.destroy();
      sockets.clear();
    },
    restore: () => void (isCut = false),
    close: () => new Promise((done) => server.close(done)),
  };
}

let redis: RedisServer;
let admin: Redis;
beforeAll(async () => {
  redis = await startRedisServer();
  admin = new Redis(redis.url);
});
afterAll(async () => {
  await admin.quit();
  await redis.stop();
});

/** Long enough for an answer of Redis on a busy machine. */
const PATIENT_MS = 60_000;
const admitted = (taken: readonly Taken[]): number => taken.filter((each) => 'used' in each).length;

describeDatabases('quotas that Redis counts', (database) => {
  const clock = fakeClock('2030-01-15T12:00:00.000Z');
  const closers: (() => Promise<unknown>)[] = [];
  const records: string[] = [];
  const log = {
    error: (_: object, message: string) => void records.push(`error ${message}`),
    warn: (_: object, message: string) => void records.push(`warn ${message}`),
    info: () => undefined,
  };
  let prefix: string;
  let lastKey = 0;

  beforeAll(async () => {
    await migrate(database.db, [{ name: 'requests', migrations: requestMigrations }]);
    prefix = `test:${crypto.randomUUID()}:`;
  });
  afterEach(async () => {
    records.splice(0);
    for (const close of closers.splice(0).reverse()) await close();
  });

  const ioredis = (url: string): Redis => {
    const client = new Redis(url, { retryStrategy: () => 20, maxRetriesPerRequest: null });
    client.on('error', () => undefined);
    closers.push(() => Promise.resolve(client.disconnect()));
    return client;
  };
  /** As a process has it. */
  const counterOf = (client: RedisClient, timeoutMs = PATIENT_MS, db: Database = database.db): RedisCounter => {
    const counter = new RedisCounter(db, { client, prefix, timeoutMs }, { clock, log });
    closers.push(() => counter.stop());
    return counter;
  };
  const countOf = (text: string, keyId = `key-${(lastKey += 1)}`): QuotaCount => {
    const quota = parseQuota(text);
    return quotaCount({ kind: 'key', owner: 'ada', tenant: '', keyId }, { ...calendarPeriod(quota.period, clock.now()), quota });
  };
  const takeMany = (counter: RedisCounter, counts: readonly QuotaCount[], times: number): Promise<Taken[]> =>
    Promise.all(Array.from({ length: times }, () => counter.take(counts)));
  const usedOf = async ({ id }: QuotaCount): Promise<number | undefined> => {
    const [row] = await database.db.query<{ used: number | bigint }>('select used from request_quotas where id = $1', [id]);
    return row === undefined ? undefined : Number(row.used);
  };
  const inRedis = (count: QuotaCount) => admin.hgetall(prefix + count.id);

  test('through ioredis and through redis, of 60 requests at once exactly the quota is admitted, and the database gets the number', async () => {
    const other = createClient({ url: redis.url });
    await other.connect();
    closers.push(() => other.close());
    for (const client of [ioredis(redis.url), other]) {
      const [counter, count] = [counterOf(client), countOf('7/month')];
      expect(admitted(await takeMany(counter, [count], 60))).toBe(7);
      expect(await counter.take([count])).toEqual({ usedUp: 0 });
      await counter.settle([count.id]);
      expect(await usedOf(count)).toBe(7);
    }
    expect(records).toEqual([]);
  });

  test('a request with several quotas is counted in all of them or in none', async () => {
    const counter = counterOf(ioredis(redis.url));
    const [wide, narrow] = [countOf('100/month'), countOf('5/day')];
    expect(await counter.take([wide, narrow])).toEqual({ used: [1, 1] });
    expect(admitted(await takeMany(counter, [wide, narrow], 20))).toBe(4);
    expect(await counter.take([wide, narrow])).toEqual({ usedUp: 1 });
    expect(await inRedis(wide)).toMatchObject({ n: '5' });
  });

  test('a changed quota applies to the next request, and unlimited only counts', async () => {
    const counter = counterOf(ioredis(redis.url));
    expect(admitted(await takeMany(counter, [countOf('2/day', 'changed')], 3))).toBe(2);
    expect(admitted(await takeMany(counter, [countOf('4/day', 'changed')], 3))).toBe(2);
    expect(admitted(await takeMany(counter, [countOf('1/day', 'changed')], 1))).toBe(0);
    expect(admitted(await takeMany(counter, [countOf('unlimited/day', 'changed')], 3))).toBe(3);
    await counter.stop();
    expect(await usedOf(countOf('1/day', 'changed'))).toBe(7);
    const [row] = await database.db.query('select quota from request_quotas where id = $1', [countOf('1/day', 'changed').id]);
    expect(row).toEqual({ quota: null });
  });

  test('two processes admit together exactly the quota, and what one counted before it was killed is in the usage', async () => {
    const count = countOf('25/hour');
    const children = [1, 2].map(() =>
      startTaking([database.url, redis.url, prefix, count.subject.keyId, '25/hour', '40', `${clock.now().getTime()}`]),
    );
    await Promise.all(children.map(({ ready }) => ready));
    for (const child of children) child.go();
    const taken = await Promise.all(children.map(({ result }) => result));
    expect(taken[0]! + taken[1]!).toBe(25);
    await Promise.all(children.map((child) => child.kill()));
    const counter = counterOf(ioredis(redis.url));
    const rows = await database.db.query<never>('select cast(id as text) as id, used, counted_in_redis from request_quotas where id = $1', [
      count.id,
    ]);
    expect(await counter.current(rows)).toMatchObject([{ used: 25 }]);
    await counter.settle([count.id]);
    expect(await usedOf(count)).toBe(25);
  });

  test('while Redis is away the database counts; afterwards Redis continues with all of it', async () => {
    const line = await cuttable(redis.url);
    closers.push(() => line.close());
    const [counter, count] = [counterOf(ioredis(line.url), 300), countOf('100/month')];
    const others = counterOf(ioredis(redis.url), PATIENT_MS, await database.open());
    let total = 0;
    const take = async (of: RedisCounter, times: number): Promise<number> => {
      const found = admitted(await takeMany(of, [count], times));
      total += found;
      return found;
    };
    await take(counter, 1);
    line.cut();
    expect(await take(counter, 30)).toBe(30);
    expect(records[0]).toBe('error The redis counter of quotas does not answer: the database counts until it does.');
    line.restore();
    const isBack = async () => (await take(counter, 1), records.at(-1));
    await expect.poll(isBack, { timeout: PATIENT_MS, interval: 500 }).toBe('warn The redis counter of quotas answers again.');
    // What was under way when the connection broke is counted by Redis, too, and then taken back from the database.
    const agreed = async () => {
      const { n, b } = await inRedis(count);
      return Number(n) + Number(b) - total;
    };
    await expect.poll(async () => (await take(others, 1), agreed()), { timeout: PATIENT_MS, interval: 1500 }).toBe(0);
    expect(total).toBeLessThan(100);
    await Promise.all([take(counter, 100), take(others, 100)]);
    expect(total).toBe(100);
    await Promise.all([counter.stop(), others.stop()]);
    expect(await usedOf(count)).toBe(100);
  });

  test('an answer that comes too late is not counted twice', async () => {
    const client = ioredis(redis.url);
    const [counter, count] = [counterOf(client, 50), countOf('100/month')];
    // The first answers may be late on a busy machine: they are counted once all the same.
    await takeMany(counter, [count], 3);
    await admin.call('CLIENT', 'PAUSE', '400', 'ALL');
    expect(admitted(await takeMany(counter, [count], 10))).toBe(10);
    await client.ping();
    await counter.stop();
    expect(await usedOf(count)).toBe(13);
  });

  test('what Redis loses is continued from the database and from what the process has seen', async () => {
    const [counter, count] = [counterOf(ioredis(redis.url)), countOf('20/month')];
    await takeMany(counter, [count], 12);
    await admin.del(prefix + count.id);
    expect(admitted(await takeMany(counter, [count], 30))).toBe(8);
    await counter.stop();
    expect(await usedOf(count)).toBe(20);
    const later = counterOf(ioredis(redis.url));
    await admin.del(prefix + count.id);
    expect(await later.take([count])).toEqual({ usedUp: 0 });
  });

  test('a Redis that went back to an older copy is told what the database has', async () => {
    const [counter, count] = [counterOf(ioredis(redis.url)), countOf('20/month')];
    await takeMany(counter, [count], 12);
    await counter.settle([count.id]);
    await admin.hset(prefix + count.id, 'n', 5);
    const later = counterOf(ioredis(redis.url));
    await later.take([count]);
    await expect.poll(() => inRedis(count), { timeout: PATIENT_MS }).toMatchObject({ n: '12' });
    expect(admitted(await takeMany(later, [count], 30))).toBe(8);
  });

  test('the count of an erased user begins at 0', async () => {
    const [counter, count] = [counterOf(ioredis(redis.url)), countOf('20/month')];
    await takeMany(counter, [count], 12);
    await counter.stop();
    await database.db.query('delete from request_quotas where id = $1', [count.id]);
    const next = counterOf(ioredis(redis.url));
    expect(await next.take([count])).toEqual({ used: [13] });
    await next.stop();
    expect([await usedOf(count), await inRedis(count)]).toEqual([undefined, {}]);
    const [last] = [counterOf(ioredis(redis.url))];
    expect(await last.take([count])).toEqual({ used: [1] });
  });

  test('a count stays in Redis a week longer than its period, and no longer', async () => {
    const [counter, count] = [counterOf(ioredis(redis.url)), countOf('20/hour')];
    await counter.take([count]);
    const ttlMs = await admin.pttl(prefix + count.id);
    expect(ttlMs).toBeGreaterThan(7 * 86_400_000);
    expect(ttlMs).toBeLessThanOrEqual(7 * 86_400_000 + 3_600_000);
  });

  test('without an answer of Redis nothing is settled, so no period is recorded with too little', async () => {
    const line = await cuttable(redis.url);
    closers.push(() => line.close());
    const [counter, count] = [counterOf(ioredis(line.url), 300), countOf('20/month')];
    await counter.take([count]);
    line.cut();
    await expect(counter.settle([count.id])).rejects.toThrow('Redis does not answer');
  });
});

function startTaking(values: readonly string[]) {
  const script = join(import.meta.dirname, '../../../../test/take-from-quota.ts');
  const child = spawn(process.execPath, ['--conditions=source', script, ...values], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise<void>((done) => child.once('exit', () => done()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error('the process ended early');
    return value;
  };
  const ready = line().then(() => undefined);
  return {
    ready,
    result: ready.then(async () => Number(await line())),
    go: () => void child.stdin.write('go\n'),
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
