import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { job } from '../../src/contrib/jobs/declare/job.ts';
import { unbindJobs, useJobs } from '../../src/contrib/jobs/rows/jobs.ts';
import { startJob, startJobs } from '../../src/contrib/jobs/start/start-job.ts';
import { runDueJobs } from '../../src/contrib/jobs/manage/work-jobs.ts';
import { createEndpoint } from '../../src/contrib/webhooks/endpoints/create-endpoint.ts';
import { publish } from '../../src/contrib/webhooks/publishing/publish.ts';
import { WAKE_CHANNEL } from '../../src/contrib/webhooks/publishing/publish-store.ts';
import type { ForeignTransactionOptions, SqlExecutor } from '../../src/db/engine/foreign/sql-executor.ts';
import { unbindWebhooks, useWebhooks } from '../../src/contrib/webhooks/webhooks.ts';
import type { Dialect } from '../../src/db/index.ts';
import { describeDatabases, type TestDatabase } from '../../src/testing/index.ts';
import { migrateJobs } from '../jobs/describe-jobs.ts';
import { LOOPBACK, migrateWebhooks } from './outbox.ts';

export interface BusinessTransaction {
  /** The library's own transaction as `publish` takes it. */
  executor(options?: ForeignTransactionOptions): SqlExecutor;
  /** A savepoint of the library inside the transaction; rolled back when `work` rejects. */
  nested(work: (inner: BusinessTransaction) => Promise<unknown>): Promise<unknown>;
}

/** Another library with a connection of its own to the test's database. */
export interface ForeignLibrary {
  /** Stores an order in a transaction of the library and runs `work` in it; rolled back when `work` rejects. */
  transact<T>(order: number, work: (tx: BusinessTransaction) => Promise<T>): Promise<T>;
  /** The adapter on a handle that has no transaction open. */
  outside(): SqlExecutor;
  close(): unknown;
}

export interface ForeignLibraryOptions {
  readonly open: (place: {
    readonly dialect: Dialect;
    readonly url: string;
    readonly path: string;
  }) => ForeignLibrary | Promise<ForeignLibrary>;
  readonly dialects?: readonly Dialect[];
  /** Whether the test's transactions have savepoints. */
  readonly savepoints?: boolean;
  /** Whether the library says when a transaction has committed. */
  readonly commitHook?: boolean;
  /** Where the adapter can tell its transaction from a later one on the same connection. Default: everywhere. */
  readonly tellsTransactionsApart?: readonly Dialect[];
}

const ran: number[] = [];
const shipOrder = job('orders.ship', { input: z.object({ order: z.int() }), run: ({ input }) => void ran.push(input.order) });

const REFUSED = new Error('the business change was refused');
let orders = 0;

/** What every adapter guarantees, tested with the library itself. */
export function describeForeignLibrary(
  name: string,
  options: ForeignLibraryOptions,
  more?: (open: () => ForeignLibrary, database: TestDatabase) => void,
): void {
  describeDatabases(
    `publish and startJob in a transaction of ${name}`,
    (database) => {
      if (options.dialects?.includes(database.dialect) === false) {
        test.runIf(false)(`${name} is not for ${database.dialect}`, () => undefined);
        return;
      }
      let opened: ForeignLibrary | undefined;
      const library = (): ForeignLibrary => {
        if (opened === undefined) throw new Error('not opened yet');
        return opened;
      };
      beforeAll(async () => {
        useWebhooks(database.db, { urlPolicy: LOOPBACK });
        useJobs(database.db, { jobs: [shipOrder] });
        await database.db.transaction((tx) => createEndpoint(tx, { owner: 'ada', url: 'http://127.0.0.1:9/', events: ['order.*'] }));
        const path = database.url.replace(/^sqlite:/, '');
        opened = await options.open({ dialect: database.dialect, url: database.url, path });
      });
      afterAll(async () => {
        await opened?.close();
        unbindWebhooks(database.db);
        unbindJobs(database.db);
      });
      defineGuarantees(database, library, options);
      defineJobGuarantees(database, library, options);
      more?.(library, database);
    },
    {
      template: 'webhooks_jobs_and_orders',
      prepare: async (db) => {
        await migrateWebhooks(db);
        await migrateJobs(db);
        await db.query('create table orders (id integer primary key, total text not null)');
      },
    },
  );
}

export async function stored(database: TestDatabase, order: number): Promise<{ orders: number; events: number; deliveries: number }> {
  const count = async (text: string) => Number((await database.db.query<{ n: number }>(text, [order]))[0]?.n);
  const data = database.dialect === 'postgres' ? `cast(data as json) ->> 'order' = cast($1 as text)` : `data ->> 'order' = $1`;
  return {
    orders: await count('select count(*) as n from orders where id = $1'),
    events: await count(`select count(*) as n from webhook_events where ${data}`),
    deliveries: await count(`select count(*) as n from webhook_deliveries where event_id in (select id from webhook_events where ${data})`),
  };
}

export function newOrder(): number {
  return ++orders;
}

async function storedJobs(database: TestDatabase, order: number): Promise<{ orders: number; jobs: number }> {
  const count = async (text: string) => Number((await database.db.query<{ n: number }>(text, [order]))[0]?.n);
  const field = database.dialect === 'postgres' ? `cast(input as json) ->> 'order' = cast($1 as text)` : `input ->> 'order' = $1`;
  return {
    orders: await count('select count(*) as n from orders where id = $1'),
    jobs: await count(`select count(*) as n from jobs where ${field}`),
  };
}

function defineJobGuarantees(database: TestDatabase, library: () => ForeignLibrary, { savepoints = true }: ForeignLibraryOptions): void {
  const start = (tx: BusinessTransaction, order: number, settings: object = {}) =>
    startJob(tx.executor({ database: database.db }), shipOrder, { order }, settings);

  test('a job of a committed transaction is there and runs; of a rolled-back one there is none', async () => {
    const [kept, dropped] = [newOrder(), newOrder()];
    const started = await library().transact(kept, (tx) => start(tx, kept));
    expect(started).toMatchObject({ status: 'queued', created: true });
    const failing = library().transact(dropped, async (tx) => {
      await start(tx, dropped);
      await startJobs(tx.executor(), shipOrder, [{ order: dropped }, { order: dropped }]);
      throw REFUSED;
    });
    await expect(failing).rejects.toThrow(REFUSED.message);
    expect(await storedJobs(database, kept)).toEqual({ orders: 1, jobs: 1 });
    expect(await storedJobs(database, dropped)).toEqual({ orders: 0, jobs: 0 });
    await runDueJobs(database.db);
    expect(ran.filter((order) => order === kept || order === dropped)).toEqual([kept]);
  });

  test.runIf(savepoints)('a rolled-back savepoint takes its job with it and leaves the others', async () => {
    const [outer, inner] = [newOrder(), newOrder()];
    await library().transact(outer, async (tx) => {
      await start(tx, outer);
      const nested = tx.nested(async (savepoint) => {
        await start(savepoint, inner);
        throw REFUSED;
      });
      return expect(nested).rejects.toThrow(REFUSED.message);
    });
    expect(await storedJobs(database, outer)).toEqual({ orders: 1, jobs: 1 });
    expect(await storedJobs(database, inner)).toMatchObject({ jobs: 0 });
  });

  test('the unique key of a job holds across its transactions', async () => {
    const order = newOrder();
    const once = { uniqueKey: `order-${order}` };
    const first = await library().transact(order, (tx) => start(tx, order, once));
    const again = await library().transact(newOrder(), (tx) => start(tx, order, once));
    expect(again).toMatchObject({ id: first.id, created: false });
    expect(await storedJobs(database, order)).toEqual({ orders: 1, jobs: 1 });
  });

  test('without an open transaction, and after it has ended, no job is written', async () => {
    const [order, late] = [newOrder(), newOrder()];
    const outside = (async () => startJob(library().outside(), shipOrder, { order: late }))();
    await expect(outside).rejects.toMatchObject({ code: 'no_transaction' });
    const kept: SqlExecutor[] = [];
    await library().transact(order, async (tx) => void kept.push(tx.executor()));
    for (const executor of kept) {
      const ended = (async () => startJob(executor, shipOrder, { order: late }))();
      await expect(ended).rejects.toMatchObject({ code: 'no_transaction' });
    }
    expect(kept).toHaveLength(1);
    expect(await storedJobs(database, late)).toEqual({ orders: 0, jobs: 0 });
  });
}

function defineGuarantees(database: TestDatabase, library: () => ForeignLibrary, options: ForeignLibraryOptions): void {
  const { commitHook = false, savepoints = true } = options;
  const announce = (tx: BusinessTransaction, order: number, settings: object = {}) =>
    publish(tx.executor(), 'order.paid', { order }, { owner: 'ada', ...settings });

  test('a committed transaction leaves its change, the event and the deliveries', async () => {
    const order = newOrder();
    const event = await library().transact(order, (tx) => announce(tx, order, { orderingKey: 'k' }));
    expect(event).toMatchObject({ created: true, deliveries: 1 });
    expect(await stored(database, order)).toEqual({ orders: 1, events: 1, deliveries: 1 });
  });

  test('a rolled-back transaction leaves nothing', async () => {
    const order = newOrder();
    const failing = library().transact(order, async (tx) => {
      expect(await announce(tx, order)).toMatchObject({ created: true, deliveries: 1 });
      throw REFUSED;
    });
    await expect(failing).rejects.toThrow(REFUSED.message);
    expect(await stored(database, order)).toEqual({ orders: 0, events: 0, deliveries: 0 });
  });

  test.runIf(savepoints)('a rolled-back savepoint takes its event with it and leaves the others', async () => {
    const [outer, inner] = [newOrder(), newOrder()];
    await library().transact(outer, async (tx) => {
      await announce(tx, outer);
      const nested = tx.nested(async (savepoint) => {
        await announce(savepoint, inner);
        throw REFUSED;
      });
      return expect(nested).rejects.toThrow(REFUSED.message);
    });
    expect(await stored(database, outer)).toEqual({ orders: 1, events: 1, deliveries: 1 });
    expect(await stored(database, inner)).toMatchObject({ events: 0, deliveries: 0 });
  });

  test('the idempotency key holds across its transactions', async () => {
    const order = newOrder();
    const once = { idempotencyKey: `order-${order}` };
    const first = await library().transact(order, (tx) => announce(tx, order, once));
    const again = await library().transact(newOrder(), (tx) => announce(tx, order, once));
    expect(again).toEqual({ id: first.id, created: false, deliveries: 0 });
  });

  test('without an open transaction nothing is written', async () => {
    const order = newOrder();
    const refused = (async () => publish(library().outside(), 'order.paid', { order }, { owner: 'ada' }))();
    await expect(refused).rejects.toMatchObject({ code: 'no_transaction' });
    expect(await stored(database, order)).toEqual({ orders: 0, events: 0, deliveries: 0 });
  });

  for (const end of ['commit', 'rollback'] as const) {
    test(`after the ${end} publish is refused, whether the adapter was created before or after it`, async () => {
      const [order, late] = [newOrder(), newOrder()];
      const kept: { tx: BusinessTransaction; executor: SqlExecutor }[] = [];
      const ended = library().transact(order, async (tx) => {
        kept.push({ tx, executor: tx.executor() });
        if (end === 'rollback') throw REFUSED;
      });
      expect(await ended.catch((error: unknown) => error)).toBe(end === 'rollback' ? REFUSED : undefined);
      for (const { tx, executor } of kept) {
        const created = async () => publish(executor, 'order.paid', { order: late }, { owner: 'ada' });
        await expect(created()).rejects.toMatchObject({ code: 'no_transaction' });
        const creating = async () => publish(tx.executor(), 'order.paid', { order: late }, { owner: 'ada' });
        await expect(creating()).rejects.toMatchObject({ code: 'no_transaction' });
      }
      expect(kept).toHaveLength(1);
      expect(await stored(database, late)).toEqual({ orders: 0, events: 0, deliveries: 0 });
    });
  }

  test.runIf(options.tellsTransactionsApart?.includes(database.dialect) ?? true)(
    'a transaction that has ended is refused while the next one is open',
    async () => {
      const [first, second] = [newOrder(), newOrder()];
      const executors: SqlExecutor[] = [];
      const failing = library().transact(first, async (tx) => {
        executors.push(tx.executor());
        throw REFUSED;
      });
      await expect(failing).rejects.toThrow(REFUSED.message);
      await library().transact(second, async () => {
        for (const executor of executors) {
          const late = (async () => publish(executor, 'order.paid', { order: first }, { owner: 'ada' }))();
          await expect(late).rejects.toMatchObject({ code: 'no_transaction' });
        }
      });
      expect(executors).toHaveLength(1);
      expect(await stored(database, first)).toEqual({ orders: 0, events: 0, deliveries: 0 });
    },
  );

  test('publish without await leaves nothing behind a rollback, whenever it runs', async () => {
    const order = newOrder();
    const publishing: Promise<unknown>[] = [];
    const { promise: published, resolve } = Promise.withResolvers<void>();
    const publishOften = async (tx: BusinessTransaction) => {
      for (let turn = 0; turn < 40; turn++) {
        publishing.push((async () => announce(tx, order))().catch(() => undefined));
        // Some fall into the same turn of the event loop as the rollback, some into the turns after it.
        if (turn % 2 === 0) await Promise.resolve();
        else await new Promise((later) => setImmediate(later));
      }
      resolve();
    };
    const failing = library().transact(order, async (tx) => {
      void publishOften(tx);
      throw REFUSED;
    });
    await expect(failing).rejects.toThrow(REFUSED.message);
    await published;
    await Promise.all(publishing);
    expect(await stored(database, order)).toEqual({ orders: 0, events: 0, deliveries: 0 });
  });

  test('an alias that is not the named database’s is refused', async () => {
    const order = newOrder();
    const refused = library().transact(order, (tx) =>
      publish(tx.executor({ database: database.db }), 'order.paid', { order }, { owner: 'ada', using: 'reports' }),
    );
    await expect(refused).rejects.toMatchObject({ code: 'wrong_database' });
    expect(await stored(database, order)).toEqual({ orders: 0, events: 0, deliveries: 0 });
  });

  if (database.dialect === 'postgres' || commitHook) {
    test('the commit wakes workers, a rollback does not', async () => {
      const woken: string[] = [];
      const { promise, resolve } = Promise.withResolvers<void>();
      const stop = await database.db.listen(WAKE_CHANNEL, () => {
        woken.push('woken');
        resolve();
      });
      const order = newOrder();
      const wake = (tx: BusinessTransaction) => publish(tx.executor({ database: database.db }), 'order.paid', { order }, { owner: 'ada' });
      const failing = library().transact(order, async (tx) => {
        await wake(tx);
        throw REFUSED;
      });
      await failing.catch(() => undefined);
      await library().transact(order, wake);
      await promise;
      await stop();
      expect(woken).toHaveLength(1);
    });
  }

  if (commitHook) {
    test('a queue runs after the commit and not after a rollback', async () => {
      const order = newOrder();
      const seen: unknown[] = [];
      const queue = { enqueue: async (id: string, using: string) => void seen.push([id, using, (await stored(database, order)).events]) };
      const failing = library().transact(order, async (tx) => {
        await announce(tx, order, { queue });
        throw REFUSED;
      });
      await failing.catch(() => undefined);
      const { id } = await library().transact(order, async (tx) => {
        const event = await announce(tx, order, { queue });
        expect(seen).toEqual([]);
        return event;
      });
      expect(seen).toEqual([[id, 'default', 1]]);
    });

    test('a queue that fails after the commit harms neither the caller nor the next', async () => {
      const ran: string[] = [];
      const broken = { enqueue: () => Promise.reject(new Error('the queue is down')) };
      const warned = new Promise((resolve) => void process.once('warning', resolve));
      await library().transact(newOrder(), async (tx) => {
        await announce(tx, newOrder(), { queue: broken });
        await announce(tx, newOrder(), { task: (id: string) => ran.push(id) });
      });
      expect(ran).toHaveLength(1);
      expect(await warned).toMatchObject({ message: 'the queue is down' });
    });
  } else {
    test('a queue is refused, because the library cannot tell when it commits', async () => {
      const order = newOrder();
      const refused = library().transact(order, (tx) => announce(tx, order, { task: () => undefined }));
      await expect(refused).rejects.toMatchObject({ code: 'no_commit_hook' });
      expect(await stored(database, order)).toEqual({ orders: 0, events: 0, deliveries: 0 });
    });
  }
}
