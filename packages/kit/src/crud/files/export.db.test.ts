import { get, type IncomingMessage } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import {
  CustomerController,
  customers,
  ItemController,
  orderResource,
  orders,
  people,
  shop as shopModule,
  startShop,
  type Person,
  type ShopApp,
} from '../../../test/crud/shop.ts';
import { createTable, migration, model, t } from '../../db/index.ts';
import { insertMany } from '../../db/rows/repository.ts';
import { isAuthenticated, isStaff } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { CrudController, resource, visibleTo } from '../index.ts';

class OrderController extends CrudController(orderResource, {
  permission: isAuthenticated,
  filters: { item: ['starts', 'eq'], margin: ['gte'] },
  search: ['item'],
  ordering: { by: ['item', 'margin'], default: ['item'] },
  expand: ['customer', 'items'],
  export: { formats: ['csv', 'jsonl'], rowsMax: 6 },
}) {}
class StaffExport extends CrudController(orderResource, {
  permission: isAuthenticated,
  export: ['jsonl'],
  operations: { export: { permission: isStaff } },
}) {}

const lines = model('lines', {
  id: t.int().pk(),
  text: t.text().nullable(),
  secret: t.text().nullable(),
  hint: t.text().nullable(),
  data: t.json(),
});
const lineTable = migration('0001_lines', [createTable('lines', lines.columns)]);
let presented = 0;
const lineResource = resource(lines, {
  unscoped: true,
  fields: { secret: visibleTo(isStaff), hint: visibleTo(isStaff, { hidden: 'null' }) },
  computed: {
    twice: {
      requires: ['id'],
      response: z.int(),
      value: (row: { id: number }) => {
        presented += 1;
        if (row.id === 7_500) throw new Error('the disk of the server burns');
        return row.id * 2;
      },
    },
  },
});
const lineOptions = {
  permission: isAuthenticated,
  filters: { id: ['lt', 'gte'] },
  ordering: { by: ['id'] },
} as const;
class LineController extends CrudController(lineResource, { ...lineOptions, export: ['csv', 'jsonl'] }) {}
class HastyController extends CrudController(lineResource, { ...lineOptions, export: { formats: ['csv'], durationMs: 150 } }) {}
class ImpatientController extends CrudController(lineResource, { ...lineOptions, export: { formats: ['csv'], idleMs: 150 } }) {}

describeDatabases('export', (database) => {
  let shop: ShopApp;
  let address: string;
  const file = (person: Person, url: string) => shop.inject({ method: 'GET', url: `/v1/${url}`, headers: { 'x-user': person } });
  /** The answer's head over a real connection; its body is not read yet. */
  const opened = (person: Person, path: string) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      get(`${address}/v1/${path}`, { headers: { 'x-user': person } }, resolve).on('error', reject);
    });
  const read = async (message: IncomingMessage) => {
    let text = '';
    try {
      for await (const chunk of message.setEncoding('utf8')) text += chunk as string;
      return { text, isWhole: message.complete };
    } catch {
      return { text, isWhole: false };
    }
  };

  beforeAll(async () => {
    shop = await startShop({
      database: database.db,
      mount: {
        '/v1': {
          '/orders': OrderController,
          '/staff': StaffExport,
          '/lines': LineController,
          '/hasty': HastyController,
          '/impatient': ImpatientController,
          '/customers': CustomerController,
          '/items': ItemController,
        },
      },
      modules: [shopModule, { name: 'lines', models: [lines], migrations: [lineTable] }],
    });
    address = await shop.app.listen({ port: 0 });
    const [acme] = await insertMany(database.db, customers, [{ org: 'north', name: '=Acme, "Inc"', credit: '9.00' }]);
    const row = (owner: Person, item: string, more: object = {}) => ({
      org: people[owner].tenant as string,
      owner_id: people[owner].id,
      item,
      quantity: 1,
      total: '1.50',
      margin: '0.50',
      secret: 'hunter2',
      ...more,
    });
    await insertMany(database.db, orders, [
      row('ann', '=1+1', { customer_id: acme!.id, labels: ['a', 'b,c'], data: { x: [1, 'é'] }, note: '' }),
      row('ann', 'b "quoted", with\nbreak', { blob: new Uint8Array([1, 2, 255]) }),
      row('bob', 'bobs'),
      row('cid', 'cids'),
    ]);
    const numbers = `with recursive n(i) as (select 1 union all select i + 1 from n where i < 8000) `;
    // 60 MB: more than the buffers of a connection take, which are up to 36 MB on some machines. No letters: they are searched for secrets.
    const text = database.dialect === 'postgres' ? `repeat('~', 8000)` : `printf('%.*c', 8000, '~')`;
    await database.db.execute(
      `insert into lines (id, text, secret, hint, data) ${numbers} select i, ${text}, 's' || i, 'h' || i, '{}' from n`,
    );
  }, 60_000);
  afterAll(() => shop.close());

  test('CSV has a header, RFC 4180 quotes, dotted columns, lists as JSON, NULL empty and the empty text ""', async () => {
    const { statusCode, body, headers } = await file(
      'ann',
      'orders/export?expand=customer&fields=item,quantity,note,labels,data,blob,customer.name',
    );
    expect(statusCode).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': 'attachment; filename="orders.csv"',
      'cache-control': 'no-store',
    });
    const [head, first, second] = [body.indexOf('\r\n'), body.indexOf('\r\n', body.indexOf('\r\n') + 2), body.length - 2];
    expect(body.slice(0, head)).toBe('id,item,quantity,note,blob,data,labels,customer.name');
    expect(body.slice(head + 2, first).slice(36)).toBe(`,'=1+1,1,"",,"{""x"":[1,""é""]}","[""a"",""b,c""]","'=Acme, ""Inc"""`);
    expect(body.slice(first + 2, second).slice(36)).toBe(',"b ""quoted"", with\nbreak",1,,AQL/,,,');
    expect(body.endsWith('\r\n')).toBe(true);
  });

  test('JSON Lines has the items of the list', async () => {
    const { body, headers } = await file('ann', 'orders/export?format=jsonl&expand=customer');
    expect(headers['content-type']).toBe('application/x-ndjson; charset=utf-8');
    const listed = await shop.call('ann', 'GET', 'orders?expand=customer');
    expect(
      body
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual(listed.body.items);
  });

  test('2: an export shows no row of another owner or tenant, and no sensitive column', async () => {
    const ann = await file('ann', 'orders/export');
    expect(ann.body).not.toMatch(/bobs|cids|hunter2|secret/);
    const sue = await file('sue', 'orders/export');
    expect([sue.body.includes('bobs'), sue.body.includes('cids'), sue.body.includes('hunter2')]).toEqual([true, false, false]);
    expect((await file('nil', 'orders/export')).statusCode).toBe(403);
  });

  test("33: a hidden column is absent from an export, or empty under hidden: 'null'", async () => {
    const text = async (person: Person, format: string) => (await file(person, `lines/export?format=${format}&id__lt=2`)).body;
    expect((await text('ann', 'csv')).split('\r\n')[0]).toBe('id,text,hint,data,twice');
    expect((await text('ann', 'csv')).split('\r\n')[1]).toMatch(/^1,~+,,\{\},2$/);
    expect(JSON.parse(await text('ann', 'jsonl'))).toEqual({ id: 1, text: '~'.repeat(8000), hint: null, data: {}, twice: 2 });
    expect((await text('sue', 'csv')).split('\r\n')[0]).toBe('id,text,secret,hint,data,twice');
    expect(JSON.parse(await text('sue', 'jsonl'))).toMatchObject({ secret: 's1', hint: 'h1' });
  });

  test('34: an export cannot be filtered, ordered or shaped by a hidden column; staff may', async () => {
    for (const query of ['fields=margin', 'margin__gte=0', 'ordering=margin']) {
      expect([query, (await file('ann', `orders/export?${query}`)).statusCode]).toEqual([query, 422]);
      expect([query, (await file('sue', `orders/export?${query}`)).statusCode]).toEqual([query, 200]);
    }
  });

  test('76: an export of nothing has its header line', async () => {
    expect((await file('ann', 'orders/export?item=nothing&fields=item')).body).toBe('id,item\r\n');
    expect((await file('ann', 'orders/export?item=nothing&format=jsonl')).body).toBe('');
  });

  test('76: a denied export is 403 before any byte, a wrong parameter 422 that names it', async () => {
    const denied = await file('ann', 'staff/export');
    expect([denied.statusCode, denied.headers['content-type']]).toEqual([403, 'application/problem+json; charset=utf-8']);
    expect((await file('sue', 'staff/export')).statusCode).toBe(200);
    for (const query of ['format=xml', 'limit=5', 'cursor=x', 'offset=1', 'expand=items', 'nope=1', 'format=csv&format=csv']) {
      const refused = await file('ann', `orders/export?${query}`);
      expect([query, refused.statusCode, refused.headers['content-disposition']]).toEqual([query, 422, undefined]);
    }
  });

  test('76: an error in the middle cuts a CSV file and is the last line of JSON Lines', async () => {
    const csv = await read(await opened('ann', 'lines/export?id__gte=5000'));
    expect([csv.isWhole, csv.text.length > 1000]).toEqual([false, true]);
    const jsonl = await read(await opened('ann', 'lines/export?format=jsonl&id__gte=5000'));
    const last = JSON.parse(jsonl.text.trimEnd().split('\n').at(-1) as string) as { error: { code: string } };
    expect([jsonl.isWhole, last.error.code]).toEqual([true, 'internal_error']);
    expect(jsonl.text).not.toContain('burns');
  });

  test('74: a slow reader slows the cursor', async () => {
    presented = 0;
    const message = await opened('ann', 'lines/export?id__lt=7500');
    await vi.waitFor(
      async () => {
        const before = presented;
        await new Promise((done) => setTimeout(done, 200));
        expect(presented).toBe(before);
      },
      { timeout: 30_000 },
    );
    const waiting = presented;
    expect(waiting).toBeGreaterThan(0);
    expect(waiting).toBeLessThan(7_499);
    const { text, isWhole } = await read(message);
    expect([isWhole, text.split('\r\n').length]).toEqual([true, 7_499 + 2]);
    expect(presented).toBe(7_499);
  });

  test('74: an export of 60 MB takes at most 32 MB of heap over base', { timeout: 120_000 }, async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const used = () => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    const base = used();
    let [bytes, chunks, most] = [0, 0, 0];
    for await (const chunk of await opened('ann', 'lines/export?id__lt=7500')) {
      bytes += (chunk as Buffer).length;
      chunks += 1;
      // A measurement takes a collection of garbage: a few are enough to see rows pile up.
      if (chunks % 150 === 0) most = Math.max(most, used() - base);
    }
    expect(bytes).toBeGreaterThan(59_000_000);
    expect(most).toBeLessThan(32 * 1024 * 1024);
  });

  test('a client that takes nothing is cut, and so is an export that takes too long', async () => {
    for (const path of ['impatient', 'hasty']) {
      const message = await opened('ann', `${path}/export?id__lt=7500`);
      message.on('error', () => undefined);
      await vi.waitFor(
        () =>
          new Promise<void>((done, fail) =>
            shop.app.fastify.server.getConnections((_, count) => (count === 0 ? done() : fail(new Error(`${count} connections`)))),
          ),
        { timeout: 30_000 },
      );
      expect([path, (await read(message)).isWhole]).toEqual([path, false]);
    }
    const { used } = database.db.pool;
    expect(used).toBe(0);
  });

  test('a client that goes away ends the statement', async () => {
    const message = await opened('ann', 'lines/export?id__lt=7500');
    message.destroy();
    await vi.waitFor(() => expect(database.db.pool.used).toBe(0), { timeout: 30_000 });
  });

  test('more rows than allowed are 422 export_too_large before the first byte', async () => {
    const row = (item: string) => ({ org: 'south', owner_id: people.cid.id, quantity: 1, total: '1.00', item: `more ${item}` });
    await insertMany(database.db, orders, ['1', '2', '3', '4', '5', '6'].map(row));
    const refused = await file('cid', 'orders/export');
    expect([refused.statusCode, refused.json<object>()]).toMatchObject([422, { code: 'export_too_large', rows_max: 6 }]);
    expect((await file('cid', 'orders/export?item__starts=more')).statusCode).toBe(200);
  });

  test('HEAD answers with the headers and reads no row to its end', async () => {
    const head = await shop.inject({ method: 'HEAD', url: '/v1/lines/export', headers: { 'x-user': 'ann' } });
    expect([head.statusCode, head.body]).toEqual([200, '']);
    await vi.waitFor(() => expect(database.db.pool.used).toBe(0), { timeout: 30_000 });
  });
});
