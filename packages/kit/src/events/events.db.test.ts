import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { createApp } from '../app/assemble/create-app.ts';
import { job, jobs, runDueJobs, startJob } from '../contrib/jobs/index.ts';
import type { SqlExecutor } from '../db/engine/foreign/sql-executor.ts';
import { Controller } from '../http/compile/controller.ts';
import { route } from '../http/declare/route.ts';
import { allowAny } from '../permissions/built-ins.ts';
import { describeDatabases } from '../testing/databases.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { command, query } from './command.ts';
import { domainEvent } from './domain-event.ts';
import { emit } from './emit.ts';
import { on } from './event-handler.ts';

const OrderPaid = domainEvent('order.paid', z.object({ id: z.string(), at: z.coerce.date().optional() }));
const Durable = domainEvent('order.shipped', z.object({ id: z.string() }));
const Dated = domainEvent('order.dated', z.object({ at: z.date() }));
const heard: string[] = [];
let attempts = 0;

const PlaceOrder = command(z.object({ article: z.string(), count: z.coerce.number().int() }), async ({ article, count }, { db }) =>
  db.transaction(async (tx) => {
    await emit(tx, OrderPaid, { id: article });
    return { total: count * 2 };
  }),
);
const CountHeard = query(z.object({ prefix: z.string() }), ({ prefix }) => ({
  count: heard.filter((each) => each.startsWith(prefix)).length,
}));
const place = job('place', {
  input: z.object({ article: z.string() }),
  async run(context) {
    await PlaceOrder.execute(context, { article: context.input.article, count: '1' });
  },
});
const Total = z.object({ total: z.number() });

class OrderController extends Controller {
  place = route.post('/', { permission: allowAny, response: Total, command: PlaceOrder });
  count = route.get('/count', { permission: allowAny, response: z.object({ count: z.number() }), command: CountHeard });
}

const handlers = [
  on(OrderPaid, ({ id }) => void heard.push(`first ${id}`)),
  on(OrderPaid, () => {
    throw new Error('this one fails');
  }),
  on(OrderPaid, ({ id }) => void heard.push(`third ${id}`)),
  on(
    Durable,
    function sendReceipt({ id }) {
      if (++attempts < 2) throw new Error('later');
      heard.push(`durable ${id}`);
    },
    { durable: true },
  ),
  on(Dated, () => undefined, { durable: true, name: 'remember' }),
];

describeDatabases('domain events', (database) => {
  let kit: TestApp;
  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      handlers,
      modules: [jobs({ jobs: [place] })],
      mount: { '/v1': { '/orders': OrderController } },
    });
  });
  afterAll(() => kit.close());
  beforeEach(() => void heard.splice(0));

  test('handlers run after the commit, in order of registration; one that fails is logged and does not stop the others', async () => {
    await database.db.transaction(async (tx) => {
      await emit(tx, OrderPaid, { id: 'a' });
      expect(heard).toEqual([]);
    });
    expect(heard).toEqual(['first a', 'third a']);
    expect(kit.records.some(({ msg }) => msg === 'a handler of a domain event failed')).toBe(true);
  });

  test('nothing is told of a rolled-back transaction or savepoint', async () => {
    const rolledBack = database.db.transaction(async (tx) => {
      await emit(tx, OrderPaid, { id: 'gone' });
      await emit(tx, Durable, { id: 'gone' });
      throw new Error('no');
    });
    await expect(rolledBack).rejects.toThrow('no');
    await database.db.transaction(async (tx) => {
      await tx
        .transaction(async (inner) => {
          await emit(inner, OrderPaid, { id: 'inner' });
          await emit(inner, Durable, { id: 'inner' });
          throw new Error('no');
        })
        .catch(() => undefined);
      await emit(tx, OrderPaid, { id: 'outer' });
    });
    expect(heard).toEqual(['first outer', 'third outer']);
    expect(await database.db.query('select id from jobs')).toEqual([]);
  });

  test('a durable handler is a job: stored with the change, retried until it succeeds', async () => {
    await database.db.transaction((tx) => emit(tx, Durable, { id: 'b' }));
    expect(heard).toEqual([]);
    await runDueJobs(database.db);
    await database.db.query('update jobs set is_ready = true');
    await runDueJobs(database.db);
    expect(heard).toEqual(['durable b']);
    expect(await database.db.query('select name, status from jobs')).toEqual([
      { name: 'on.order.shipped.sendReceipt', status: 'succeeded' },
    ]);
  });

  test('data that a durable handler would not get as it is, is refused with the change instead of failing later', async () => {
    const emitted = database.db.transaction((tx) => emit(tx, Dated, { at: new Date('2026-01-01') }));
    await expect(emitted).rejects.toMatchObject({ code: 'input_invalid', message: expect.stringContaining('z.coerce.date()') });
    expect(await database.db.query(`select id from jobs where name = 'on.order.dated.remember'`)).toEqual([]);
  });

  test('data that its schema forbids, no transaction, and a transaction without a commit hook are refused', async () => {
    await expect(database.db.transaction((tx) => emit(tx, OrderPaid, { id: 1 } as never))).rejects.toMatchObject({ code: 'data_invalid' });
    await expect(emit(database.db, OrderPaid, { id: 'a' })).rejects.toMatchObject({ code: 'no_transaction' });
    await database.db.transaction(async (tx) => {
      const foreign: SqlExecutor = { dialect: tx.dialect, database: tx.database, query: (text, parameters) => tx.query(text, parameters) };
      await expect(emit(foreign, OrderPaid, { id: 'a' })).rejects.toMatchObject({ code: 'no_commit_hook' });
      await emit(foreign, Durable, { id: 'c' });
      await expect(emit({ ...foreign, database: undefined } as never, Durable, { id: 'c' })).rejects.toMatchObject({
        code: 'not_installed',
      });
    });
  });

  test('one command serves a route, a job and a test', async () => {
    const answer = await kit.inject({ method: 'POST', url: '/v1/orders', payload: { article: 'tea', count: 3 } });
    expect([answer.statusCode, answer.json()]).toEqual([200, { total: 6 }]);
    expect((await kit.inject({ method: 'POST', url: '/v1/orders', payload: { article: 1 } })).statusCode).toBe(422);
    await database.db.transaction((tx) => startJob(tx, place, { article: 'cup' }));
    await runDueJobs(database.db);
    const context = { db: database.db, services: kit.app.services };
    await PlaceOrder.execute(context, { article: 'pot', count: '1' });
    await expect(PlaceOrder.execute(context, { article: 1 } as never)).rejects.toMatchObject({ code: 'validation_error' });
    expect(heard.filter((each) => each.startsWith('first'))).toEqual(['first tea', 'first cup', 'first pot']);
    expect((await kit.inject('/v1/orders/count?prefix=first')).json()).toEqual({ count: 3 });
  });
});

test('a durable handler without the jobs module fails the start', () => {
  const start = (): unknown => createApp({ database: 'sqlite::memory:', handlers: [handlers[3] as never], mount: {} });
  expect(start).toThrow('jobs');
});

test('a durable handler needs a name', () => {
  expect(() => on(Durable, () => undefined, { durable: true })).toThrow('name');
});
