import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Authenticator } from '../auth/request/authenticator.ts';
import type { Database, Db } from '../db/engine/db.ts';
import { createTable, migration, model, t } from '../db/index.ts';
import { openApiDocument } from '../openapi/document.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases, testApp, type TestApp } from '../testing/index.ts';
import { CrudController, resource } from './index.ts';

const entries = model('entries', { id: t.uuidv7().pk(), code: t.text({ max: 40 }).unique(), counter: t.text(1), amount: t.int() });
const counters = model('counters', { name: t.text(1).pk(), total: t.int() });
const tables = migration('0001_entries', [createTable('entries', entries.columns), createTable('counters', counters.columns)]);

let hookRuns = 0;
let failing = 0;
/** Locks a row that others lock in another order. */
async function count(tx: Db, name: string): Promise<void> {
  hookRuns += 1;
  if (failing > 0) {
    failing -= 1;
    throw Object.assign(new Error('deadlock detected'), { code: '40P01' });
  }
  await tx.query('update counters set total = total + 1 where name = $1', [name]);
  if (tx.dialect === 'postgres') await delay(15);
}
const entryResource = resource(entries, {
  unscoped: true,
  input: ['code', 'counter', 'amount'],
  hooks: {
    create: async ({ input, tx }, next) => {
      await count(tx, input.counter);
      return next(input);
    },
    update: async ({ input, before, tx }, next) => {
      await count(tx, before.counter);
      return next(input);
    },
  },
});
const options = {
  permission: isAuthenticated,
  import: { formats: ['jsonl'], by: 'code' },
} as const;
class EntryController extends CrudController(entryResource, { ...options, bulk: { create: true } }) {}
class PartialController extends CrudController(entryResource, { permission: isAuthenticated, bulk: { create: true, mode: 'partial' } }) {}

const byHeader: Authenticator = {
  name: 'header',
  securityScheme: {},
  authenticate: ({ headers }) => ({
    user: { id: String(headers['x-user']), username: 'u', email: null, is_active: true, is_staff: false, is_superuser: false },
    scheme: 'header',
    scopes: null,
  }),
};

describeDatabases('writers that lock in different order', (database) => {
  let kit: TestApp;
  let db: Database;
  let retries = 0;
  let sent = 0;

  beforeAll(async () => {
    if (database.dialect === 'postgres')
      await database.db.execute(`alter database "${new URL(database.url).pathname.slice(1)}" set deadlock_timeout = '20ms'`);
    // Connections of its own, opened after the setting.
    db = await database.open();
    kit = await testApp({
      database: db,
      authenticators: [byHeader],
      modules: [{ name: 'entries', models: [entries, counters], migrations: [tables] }],
      mount: { '/v1': { '/entries': EntryController, '/partial': PartialController } },
    });
    await db.execute(`insert into counters (name, total) values ('a', 0), ('b', 0), ('c', 0)`);
    db.observe({ onRetry: () => (retries += 1) });
  });
  beforeEach(async () => {
    await db.execute('update counters set total = 0');
    [retries, hookRuns, failing] = [0, 0, 0];
  });
  afterAll(() => kit.close());

  const post = async (path: string, payload: string | object, headers: Record<string, string> = {}) => {
    const type = typeof payload === 'string' ? { 'content-type': 'application/x-ndjson' } : {};
    const response = await kit.inject({ method: 'POST', url: `/v1/${path}`, headers: { 'x-user': 'ann', ...type, ...headers }, payload });
    return { status: response.statusCode, headers: response.headers, body: response.json<Record<string, unknown>>() };
  };
  const orders = [
    ['a', 'b', 'c'],
    ['c', 'b', 'a'],
    ['b', 'c', 'a'],
    ['c', 'a', 'b'],
  ] as const;
  const itemsOf = (order: readonly string[]) => order.map((counter) => ({ code: `code ${(sent += 1)}`, counter, amount: 1 }));
  const totals = async () => (await db.query<{ total: number }>('select total from counters order by name')).map(({ total }) => total);
  const jsonl = (items: readonly object[]) => items.map((item) => JSON.stringify(item)).join('\n');

  test.each(['entries/bulk', 'partial/bulk', 'entries/import', 'entries/import?mode=upsert'])(
    'POST /%s by several callers ends in success or 409 write_conflict, never 500, with and without a key',
    async (path) => {
      const answers = await Promise.all(
        orders.map((order, n) => {
          const items = itemsOf(order);
          const headers: Record<string, string> = n % 2 === 0 ? { 'idempotency-key': `${path}-${n}` } : {};
          return post(path, path.includes('import') ? jsonl(items) : { items }, headers);
        }),
      );
      const done = answers.filter(({ status }) => status === 201 || status === 207);
      for (const { status, body, headers } of answers.filter((answer) => !done.includes(answer)))
        expect([status, body['code'], headers['retry-after']]).toEqual([409, 'write_conflict', '1']);
      const expected = path.includes('import')
        ? { created: 3 }
        : path.startsWith('partial')
          ? { results: [0, 1, 2].map((index) => ({ index, status: 201 })) }
          : { items: [{ amount: 1 }, { amount: 1 }, { amount: 1 }] };
      expect(done.map(({ body }) => body)).toMatchObject(done.map(() => expected));
      // A retried request counted once.
      expect(await totals()).toEqual([done.length, done.length, done.length]);
      expect(retries > 0).toBe(database.dialect === 'postgres');
    },
  );

  test('a write that loses every time is 409 with a sentence; its idempotency key can be used again', async () => {
    if (database.dialect === 'sqlite') return;
    const key = { 'idempotency-key': 'loses' };
    const items = itemsOf(['a', 'b', 'c']);
    for (const headers of [{}, key]) {
      failing = 4;
      hookRuns = 0;
      expect(await post('entries/bulk', { items }, headers)).toMatchObject({
        status: 409,
        headers: { 'retry-after': '1' },
        body: { code: 'write_conflict', detail: 'Another request changed the same records at the same time. Nothing was saved.' },
      });
      expect(hookRuns).toBe(4);
    }
    const first = await post('entries/bulk', { items }, key);
    expect([first.status, first.headers['idempotent-replayed']]).toEqual([201, undefined]);
    expect((await post('entries/bulk', { items }, key)).headers['idempotent-replayed']).toBe('true');
    expect(await totals()).toEqual([1, 1, 1]);
  });

  test('the conflict is documented for every operation', () => {
    const { components } = openApiDocument(kit.app.routes, { title: 'x', version: '1' });
    expect(components['responses']?.['Error']).toMatchObject({
      'x-error-codes': expect.arrayContaining(['write_conflict']) as string[],
      headers: { 'Retry-After': {} },
    });
  });

  test('an import that is run again with a key reads its file again', async () => {
    if (database.dialect === 'sqlite') return;
    failing = 1;
    const made = await post('entries/import', jsonl(itemsOf(['a', 'b'])), { 'idempotency-key': 'file' });
    expect([made.status, made.body['created'], retries]).toEqual([201, 2, 1]);
    expect(await totals()).toEqual([1, 1, 0]);
  });
});
