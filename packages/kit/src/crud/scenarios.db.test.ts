import { afterAll, beforeAll, expect, test } from 'vitest';
import { lineResource, deskModule, firmResource, startDesk, ticketResource, tickets } from '../../test/crud/desk.ts';
import { type Called, startShop, type Person, type ShopApp } from '../../test/crud/shop.ts';
import { observeQueries } from '../db/engine/query-observer.ts';
import { isAuthenticated, isStaff } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, resource } from './index.ts';

describeDatabases('rows that a function gives', (database) => {
  let shop: ShopApp;
  const by: { rows: boolean | 'later' } = { rows: true };
  const given = resource(tickets, {
    tenant: 'org',
    rows: () => (by.rows === 'later' ? Promise.resolve(false) : by.rows),
    version: 'version',
    input: ['sku', 'title'],
    state: 'status',
    transitions: { pay: { from: ['open'], to: 'paid' } },
    hooks: { create: ({ input, user }, next) => next({ ...input, owner_id: user?.id ?? '' }) },
  });
  class Given extends CrudController(given, { permission: isAuthenticated, export: ['jsonl'] }) {}
  beforeAll(async () => {
    shop = await startShop({
      database: database.db,
      mount: { '/v1': { '/tickets': Given } },
      resources: [firmResource],
      modules: [deskModule],
    });
  });
  afterAll(() => shop.close());

  test('10: false is an empty list and 404 for every row; true is everything in the tenant, and nothing of another', async () => {
    by.rows = true;
    const { id } = (await shop.call('ann', 'POST', 'tickets', { sku: 'a' })).body as { id: string };
    expect((await shop.call('cid', 'POST', 'tickets', { sku: 'b' })).status).toBe(201);
    const seen = async (person: Person) =>
      (await shop.call(person, 'GET', 'tickets')).body.items.map(({ sku }: { sku: string }) => sku) as string[];
    expect([await seen('ann'), await seen('bob'), await seen('cid')]).toEqual([['a'], ['a'], ['b']]);
    for (const none of [false, 'later'] as const) {
      by.rows = none;
      const { body, headers } = await shop.call('ann', 'GET', 'tickets');
      expect([body, headers['x-total-count']]).toEqual([{ items: [], count: 0, next: null, previous: null }, '0']);
      for (const [method, path, payload] of [
        ['GET', `tickets/${id}`, undefined],
        ['PATCH', `tickets/${id}`, { title: 'x' }],
        ['DELETE', `tickets/${id}`, undefined],
        ['POST', `tickets/${id}/pay`, undefined],
      ] as const)
        expect([method, (await shop.call('ann', method, path, payload)).status]).toEqual([method, 404]);
      expect((await shop.inject({ url: '/v1/tickets/export', headers: { 'x-user': 'ann' } })).body).toBe('');
      // A new row would not be among the rows of its maker.
      expect((await shop.call('ann', 'POST', 'tickets', { sku: `c-${String(none)}` })).status).toBe(404);
    }
    by.rows = true;
    expect(await seen('ann')).toEqual(['a']);
  });
});

describeDatabases('tickets', (database) => {
  let desk: ShopApp;
  beforeAll(async () => {
    desk = await startDesk({ database: database.db });
  });
  afterAll(() => desk.close());
  const make = async (sku: string, more: object = {}) =>
    (await desk.call('ann', 'POST', 'tickets', { sku, ...more })).body as { id: string };

  test("54: versions 3 → 4 beside 10 change a list's tag, and so does a row that comes or goes", async () => {
    const [one, two] = [await make('v-one'), await make('v-two')];
    const versions = async (first: number, second: number) => {
      await database.db.execute('update tickets set version = $1 where id = $2', [first, one.id]);
      await database.db.execute('update tickets set version = $1 where id = $2', [second, two.id]);
      return (await desk.call('ann', 'GET', 'tickets')).headers['etag'];
    };
    const tags = [await versions(3, 10), await versions(4, 10), await versions(31, 0), await versions(3, 110)];
    expect(new Set(tags).size).toBe(4);
    const before = await versions(3, 10);
    await desk.call('ann', 'DELETE', `tickets/${two.id}`);
    expect((await desk.call('ann', 'GET', 'tickets')).headers['etag']).not.toBe(before);
  });

  test('55: a transition obeys If-Match, and needs it where it is required', async () => {
    const { id } = await make('tagged');
    const pay = (path: string, headers: Record<string, string> = {}) => desk.call('ann', 'POST', `${path}/${id}/pay`, undefined, headers);
    const stale = await pay('tickets', { 'if-match': '"7"' });
    expect([stale.status, stale.headers['etag']]).toEqual([412, stale.body.etag]);
    // Shaped by the role of the caller.
    expect(stale.body.etag).toMatch(/^"1-/);
    expect((await pay('tickets', { 'if-match': 'W/"1"' })).status).toBe(412);
    expect((await pay('partial')).status).toBe(428);
    const paid: Called = await pay('partial', { 'if-match': '"1"' });
    expect([paid.status, paid.headers['etag']]).toEqual([200, expect.stringMatching(/^"2-/)]);
  });

  test('37: of 10,000 children a parent shows as many as its rule says, in two statements', { timeout: 120_000 }, async () => {
    const { id } = await make('many');
    const numbers =
      database.db.dialect === 'postgres'
        ? 'select gen_random_uuid() as id, i from generate_series(1, 10000) as n(i)'
        : "with recursive n(i) as (select 1 union all select i + 1 from n where i < 10000) select printf('01890000-0000-7000-8000-%012d', i) as id, i from n";
    await database.db.execute(
      `insert into lines (id, ticket_id, name) select n.id, t.id, 'line' from (${numbers}) n, tickets t where t.id = $1`,
      [id],
    );
    const texts: string[] = [];
    const { body } = await observeQueries(
      ({ sql }) => void texts.push(sql),
      () => desk.call('ann', 'GET', 'tickets?expand=lines&limit=50'),
    );
    const row = (body.items as { id: string; lines: unknown[]; lines_more?: true }[]).find((each) => each.id === id);
    expect([row?.lines.length, row?.lines_more, texts.filter((text) => text.includes('lines')).length]).toEqual([20, true, 1]);
    await database.db.execute('delete from lines where ticket_id = $1', [id]);
  });

  test('a wrapped operation of a subclass keeps what the base declares: rows, tags and keys', async () => {
    class Wrapped extends CrudController(ticketResource, { permission: isAuthenticated }) {
      override retrieve = this.wrap('retrieve', { summary: 'One', permission: isStaff.or(isAuthenticated) }, async (_, next) => next());
    }
    const other = await startShop({
      database: database.db,
      migrate: false,
      mount: { '/v1': { '/tickets': Wrapped } },
      resources: [firmResource, lineResource],
      modules: [deskModule],
    });
    try {
      const { id } = await make('wrapped');
      const seen = await other.call('ann', 'GET', `tickets/${id}`);
      expect([seen.status, seen.headers['etag']]).toEqual([200, expect.stringMatching(/^"1-/)]);
      expect((await other.call('bob', 'GET', `tickets/${id}`)).status).toBe(404);
      expect((await other.call('ann', 'GET', `tickets/${id}`, undefined, { 'if-none-match': String(seen.headers['etag']) })).status).toBe(
        304,
      );
    } finally {
      await other.close();
    }
  });
});
