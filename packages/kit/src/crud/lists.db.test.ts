import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  CustomerController,
  customers,
  ItemController,
  orderItems,
  orderResource,
  orders,
  people,
  products,
  shop as shopModule,
  startShop,
  type Person,
  type ShopApp,
} from '../../test/crud/shop.ts';
import { countQueries, observeQueries } from '../db/engine/query-observer.ts';
import { insertMany, update } from '../db/rows/repository.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, filter } from './index.ts';
import { usualLimits } from './declare/limits.ts';
import { refuseCostlyExpand, type Shape } from './read/shape.ts';

interface Page {
  readonly items: Record<string, unknown>[];
  readonly count: number | null;
  readonly next: string | null;
  readonly previous: string | null;
}

describeDatabases('lists', (database) => {
  let shop: ShopApp;
  beforeAll(async () => {
    shop = await startShop({ database: database.db });
    const day = (number: number) => new Date(Date.UTC(2026, 0, 1 + (number % 7)));
    await insertMany(
      database.db,
      orders,
      Array.from({ length: 250 }, (_, index) => ({
        org: 'north',
        owner_id: people.bob.id,
        item: `thing ${index % 10}`,
        quantity: 1 + (index % 3),
        total: `${index % 50}.${index % 2 === 0 ? '50' : '00'}`,
        due_at: index % 4 === 0 ? null : day(index),
        created_at: day(index),
        status: (['open', 'paid', 'cancelled'] as const)[index % 3]!,
      })),
    );
  });
  afterAll(() => shop.close());

  const get = async (url: string, person: Person = 'bob') => {
    const answer = await shop.call(person, 'GET', `orders${url}`);
    return { ...answer, page: answer.body as Page };
  };
  const ids = (page: Page) => page.items.map(({ id }) => String(id));

  async function walk(query: string, direction: 'next' | 'previous' = 'next', start = query): Promise<string[]> {
    const found: string[] = [];
    for (let url: string | null = start; url !== null;) {
      const { page, status } = await get(url);
      expect(status).toBe(200);
      if (direction === 'next') found.push(...ids(page));
      else found.unshift(...ids(page));
      url = page[direction];
    }
    return found;
  }

  test.each([
    ['13: equal sort values', 'created_at'],
    ['13: equal sort values, descending', '-created_at'],
    ['14: NULLs', 'due_at'],
    ['14: NULLs, descending', '-due_at'],
    ['two columns, two directions', '-due_at,total'],
    ['text', 'item,-created_at'],
  ])('%s: walked completely, without repeats, forward and back', async (_, ordering) => {
    const forward = await walk(`?limit=7&ordering=${ordering}`);
    expect(forward).toHaveLength(250);
    expect(new Set(forward).size).toBe(250);
    let last = (await get(`?limit=7&ordering=${ordering}`)).page;
    while (last.next !== null) last = (await get(last.next)).page;
    const back = [...(await walk('', 'previous', last.previous!)), ...ids(last)];
    expect(back).toEqual(forward);
    expect(forward).toEqual(await walk(`?limit=100&ordering=${ordering}`));
  });

  test('14: NULLs come last in both directions', async () => {
    for (const ordering of ['due_at', '-due_at']) {
      const { page } = await get(`?limit=100&ordering=${ordering}`);
      expect(page.items.every(({ due_at }) => due_at !== null)).toBe(true);
    }
  });

  test('15: rows that come and go between pages repeat no other row', async () => {
    const first = (await get('?limit=50&ordering=-created_at')).page;
    const [made] = await insertMany(database.db, orders, [
      { org: 'north', owner_id: people.bob.id, item: 'new', quantity: 1, total: '1.00', created_at: new Date(Date.UTC(2026, 0, 9)) },
    ]);
    await database.db.query('delete from orders where id = $1', [first.items[0]!['id']]);
    const rest = await walk('', 'next', first.next!);
    expect(rest.filter((id) => ids(first).includes(id))).toEqual([]);
    await database.db.query('delete from orders where id = $1', [made!.id]);
    expect(new Set([...ids(first), ...rest]).size).toBe(250);
  });

  test.each(['id', '-created_at', 'created_at', 'due_at', '-due_at', '-due_at,total', 'item,-created_at'])(
    'a page that was emptied leads back to every row that is left, by %s',
    async (ordering) => {
      const day = (number: number) => new Date(Date.UTC(2026, 0, 1 + number));
      const made = Array.from({ length: 7 }, (_, index) => ({
        org: 'north',
        owner_id: people.ann.id,
        item: `same ${index % 2}`,
        quantity: 1,
        total: '1.00',
        created_at: day(index % 2),
        due_at: index % 2 === 0 ? null : day(0),
      }));
      const order = ordering === 'id' ? [] : [ordering];
      const pages: ((reference: string | null) => Promise<Page>)[] = [
        async (reference) => {
          const own = order.map((each) => `&ordering=${each}`).join('');
          return (await shop.call('ann', 'GET', `orders${reference ?? `?limit=2${own}`}`)).body as Page;
        },
        async (reference) => {
          const body = order.length === 0 ? {} : { ordering: ordering.split(',') };
          return (await shop.call('ann', 'QUERY', `orders${reference ?? '?limit=2'}`, body)).body as Page;
        },
      ];
      const removeRows = async ({ items }: Page) => {
        for (const { id } of items) await database.db.query('delete from orders where id = $1', [id]);
      };
      for (const read of pages) {
        await insertMany(database.db, orders, made);
        const first = await read(null);
        const second = await read(first.next);
        const third = await read(second.next);
        const last = await read(third.next);
        expect([last.items.length, last.next]).toEqual([1, null]);
        await removeRows(last);
        const emptyLast = await read(third.next);
        expect([emptyLast.items, emptyLast.next]).toEqual([[], null]);
        expect(ids(await read(emptyLast.previous))).toEqual(ids(third));
        await removeRows(first);
        const emptyFirst = await read(second.previous);
        expect([emptyFirst.items, emptyFirst.previous]).toEqual([[], null]);
        const afterEmpty = await read(emptyFirst.next);
        expect(ids(afterEmpty)).toEqual(ids(second));
        // The row at the position is gone, too: the next one is shown.
        await removeRows(second);
        expect(ids(await read(emptyFirst.next))).toEqual(ids(third));
        await removeRows(third);
        for (const reference of [emptyFirst.next, emptyLast.previous, third.next, second.previous]) {
          const empty = await read(reference);
          expect(empty.items).toEqual([]);
          const back = empty.next ?? empty.previous;
          expect((await read(back)).items, 'nothing is left on either side').toEqual([]);
        }
      }
    },
  );

  test('16: a cursor of another ordering, operation, filter, caller or byte is 422 invalid_cursor', async () => {
    const { page } = await get('?limit=5');
    const cursor = new URLSearchParams(page.next!).get('cursor')!;
    const flipped = `${cursor.slice(0, 20)}${cursor[20] === 'A' ? 'B' : 'A'}${cursor.slice(21)}`;
    for (const [url, person] of [
      [`?cursor=${cursor}&ordering=total`, 'bob'],
      [`?cursor=${cursor}&status=open`, 'bob'],
      [`?cursor=${cursor}&search=thing`, 'bob'],
      [`?cursor=${cursor}`, 'ann'],
      [`?cursor=${flipped}`, 'bob'],
      [`?cursor=${'x'.repeat(7000)}`, 'bob'],
      ['?cursor=', 'bob'],
      ['?cursor=%7B%7D', 'bob'],
    ] as const) {
      const { status, body } = await get(url, person);
      expect([url.slice(0, 80), status, body.code]).toEqual([url.slice(0, 80), 422, 'invalid_cursor']);
    }
    // The page before and the page after are named by one encryption: neither becomes the other by one character.
    const second = (await get(page.next!)).page;
    const [next, previous] = [second.next!, second.previous!].map((link) => new URLSearchParams(link).get('cursor')!) as [string, string];
    expect(Array.from(next).filter((character, index) => character !== previous[index]).length).toBeGreaterThan(1);
    for (const [url, person] of [
      [`?cursor=${previous}&status=open`, 'bob'],
      [`?cursor=${next}`, 'ann'],
      [`?cursor=${next.startsWith('A') ? 'B' : 'A'}${next.slice(1)}`, 'bob'],
      [`?cursor=${next.slice(0, next.lastIndexOf('.'))}`, 'bob'],
    ] as const)
      expect([url, (await get(url, person)).body.code]).toEqual([url, 'invalid_cursor']);
    const query = await shop.call('bob', 'QUERY', `orders?cursor=${cursor}`, {});
    expect([query.status, query.body.code]).toEqual([422, 'invalid_cursor']);
    expect((await get(`?cursor=${cursor}&limit=9&fields=id`)).status, 'limit and fields may change').toBe(200);
  });

  test('16: a cursor belongs to a tenant: of another one it is 422, for the same user', async () => {
    const tenants = await startShop({
      database: database.db,
      migrate: false,
      modules: [shopModule],
      tenant: ({ headers }) => String(headers['x-tenant']),
    });
    try {
      const ask = (url: string, tenant: string) => tenants.call('bob', 'GET', `orders${url}`, undefined, { 'x-tenant': tenant });
      const { body } = await ask('?limit=5', 'north');
      expect((await ask(body.next, 'north')).status).toBe(200);
      const other = await ask(body.next, 'south');
      expect([other.status, other.body.code]).toEqual([422, 'invalid_cursor']);
    } finally {
      await tenants.close();
    }
  });

  test('17: next keeps every parameter as it was sent, and is relative to any address', async () => {
    const sent = '?status__in=open,paid&item__contains=&limit=5&mine=true&item__starts=thing%20';
    const { page } = await get(sent);
    expect(page.next).toMatch(/^\?cursor=[\w-]+&status__in=open,paid&item__contains=&limit=5&mine=true&item__starts=thing%20$/);
    const second = (await get(page.next!)).page;
    expect(second.items).toHaveLength(5);
    expect(ids(second).filter((id) => ids(page).includes(id))).toEqual([]);
  });

  test('16: a cursor of 10 kB is 422 invalid_cursor; another URL as long is 414 and points to QUERY', async () => {
    const long = await shop.call('ann', 'GET', `orders?cursor=${'x'.repeat(10_000)}`);
    expect([long.status, long.body.code]).toEqual([422, 'invalid_cursor']);
    const other = await shop.call('ann', 'GET', `orders?search=${'x'.repeat(10_000)}`);
    expect([other.status, other.body.code, other.body.detail]).toEqual([414, 'uri_too_long', expect.stringContaining('QUERY')]);
  });

  test('U+0000 and __proto__ in a parameter are 422 at the parameter, as other values and names that nothing can have', async () => {
    for (const [query, name] of [
      ['search=a%00b', 'search'],
      ['cursor=%00', 'cursor'],
      ['__proto__=1', '__proto__'],
      ['constructor=1', 'constructor'],
    ]) {
      const { status, body } = await shop.call('ann', 'GET', `orders?${query}`);
      expect([query, status, body.errors[0].location]).toEqual([query, 422, ['query', name]]);
    }
    expect((await shop.call('ann', 'GET', 'orders/%00')).status).toBe(404);
  });

  test('28: QUERY takes ordering, fields and expand as a list or as the parameters of GET have them', async () => {
    const [list, text] = await Promise.all([
      shop.call('ann', 'QUERY', 'orders', { ordering: ['-total', 'created_at'], fields: ['id', 'total'], limit: 5 }),
      shop.call('ann', 'QUERY', 'orders', { ordering: '-total,created_at', fields: 'id,total', limit: 5 }),
    ]);
    expect([text.status, text.body.items]).toEqual([200, list.body.items]);
    expect((await shop.call('ann', 'QUERY', 'orders', { ordering: [1] })).status).toBe(422);
    // A fault is where the client wrote it.
    const places = async (url: string, body: object) =>
      (await shop.call('ann', 'QUERY', url, body)).body.errors.map(({ location }: { location: string[] }) => location.join('.')).toSorted();
    expect(await places('orders', { fields: ['nope'], expand: ['nope'], ordering: ['nope'], limit: 0 })).toEqual([
      'body.expand',
      'body.fields',
      'body.limit',
      'body.ordering',
    ]);
    expect(await places('orders', { fields: 'nope' })).toEqual(['body.fields']);
    expect(await places('orders?limit=0&nope=1', {})).toEqual(['query.limit', 'query.nope']);
  });

  test('18: Link has the next and previous page', async () => {
    const { page, headers } = await get('?limit=5');
    expect(headers['link']).toBe(`<?limit=5>; rel="first", <${page.next}>; rel="next"`);
    expect((await get('?limit=1000')).headers['link']).toBeUndefined();
    const second = await get(page.next!);
    expect(second.headers['link']).toMatch(/^<\?limit=5>; rel="first", /);
    expect(second.headers['link']).toContain(`>; rel="first", <${second.page.next}>; rel="next", <${second.page.previous}>; rel="prev"`);
  });

  test('19, 20: later pages run the one statement of the first, without OFFSET and without counting again', async () => {
    const texts: string[] = [];
    const observe = async (url: string) => {
      texts.length = 0;
      const answer = await observeQueries(
        ({ sql }) => void texts.push(sql),
        () => get(url),
      );
      return { ...answer, texts: [...texts] };
    };
    const first = await observe('?limit=5');
    expect(first.texts).toHaveLength(2);
    expect([first.page.count, first.headers['x-total-count']]).toEqual([null, '100+']);
    const second = await observe(first.page.next!);
    expect(second.texts).toHaveLength(1);
    expect(second.texts[0]).not.toMatch(/offset/i);
    expect([second.page.count, second.headers['x-total-count']]).toEqual([null, '100+']);
    const some = await observe('?limit=5&item=thing%203');
    expect([some.page.count, some.headers['x-total-count']]).toEqual([25, '25']);
    expect((await get(some.page.next!)).page.count).toBe(25);
    const whole = await observe('?limit=100&item=thing%203');
    expect([whole.page.count, whole.texts.length]).toEqual([25, 1]);
  });

  test('22: orderings may be a list or repeated; an undeclared name is 422 with a hint', async () => {
    const listed = await get('?ordering=-total,created_at');
    expect(ids(listed.page)).toEqual(ids((await get('?ordering=-total&ordering=created_at')).page));
    const wrong = await get('?ordering=totl');
    expect(wrong.body.errors).toMatchObject([
      { location: ['query', 'ordering'], code: 'unknown_field', message: expect.stringContaining('Did you mean "total"?') },
    ]);
    expect((await get('?ordering=total,item,due_at,created_at')).status).toBe(422);
    expect((await get('?ordering=total,-total')).status).toBe(422);
    for (const empty of ['total,,item', ',total', 'total,', ',', ''])
      expect([empty, (await get(`?ordering=${empty}`)).status]).toEqual([empty, 422]);
  });

  test('an operator that is not declared is unknown_operator with those that are; on a column the caller may not see it is unknown', async () => {
    const errors = async (query: string, person: Person = 'bob') => (await get(`?${query}`, person)).body.errors;
    expect(await errors('total__contains=1')).toEqual([
      {
        location: ['query', 'total__contains'],
        code: 'unknown_operator',
        message: '"total" has no operator "contains" here. Known: total, total__gte, total__lte, total__gt, total__lt.',
      },
    ]);
    // Equality is the parameter without an operator, and the message says so.
    expect(await errors('total__eq=1')).toEqual([
      expect.objectContaining({ code: 'unknown_operator', message: expect.stringContaining('Known: total, total__gte') }),
    ]);
    for (const name of ['margin__lt', 'customer__credit__lt', 'nope__lt'])
      expect(await errors(`${name}=1`)).toEqual([expect.objectContaining({ location: ['query', name], code: 'unknown_field' })]);
    expect(await errors('margin__lt=1', 'sue')).toEqual([expect.objectContaining({ code: 'unknown_operator' })]);
  });

  test('a filter through a relation sees the rows and fields of its target that the caller sees', async () => {
    const [own, foreign] = await insertMany(database.db, customers, [
      { org: 'north', name: 'Through', credit: '5.00' },
      { org: 'south', name: 'Through', credit: '5.00' },
    ]);
    await insertMany(
      database.db,
      orders,
      [own!.id, foreign!.id].map((customer_id, index) => ({
        org: 'north',
        owner_id: people.ann.id,
        item: `through ${index}`,
        quantity: 1,
        total: '1.00',
        customer_id,
      })),
    );
    const found = async (query: string, person: Person) => (await get(`?${query}`, person)).page.items.map(({ item }) => item);
    expect(await found('customer__name=Through', 'ann')).toEqual(['through 0']);
    expect(await found('customer__name__contains=rOUG&customer__credit__gte=5', 'sue')).toEqual(['through 0']);
    expect((await get('?customer__credit__gte=5', 'ann')).status).toBe(422);
    await database.db.execute(`delete from orders where item like 'through %'`);
  });

  test('23: decimals compare by value', async () => {
    const totals = (await get('?total__gte=9.5&total__lt=11&limit=100&ordering=total')).page.items.map(({ total }) => total);
    expect(totals.every((total) => Number(total) >= 9.5 && Number(total) < 11)).toBe(true);
    expect(totals.length).toBeGreaterThan(0);
    const ordered = (await get('?limit=100&ordering=total')).page.items.map(({ total }) => Number(total));
    expect(ordered).toEqual(ordered.toSorted((a, b) => a - b));
  });

  test('24: lists of values', async () => {
    const listed = await get('?status__in=open,paid&limit=100');
    expect(ids(listed.page)).toEqual(ids((await get('?status__in=open&status__in=paid&limit=100')).page));
    expect(listed.page.items.some(({ status }) => status === 'cancelled')).toBe(false);
    expect((await get('?status__nin=open,paid&limit=100')).page.items.every(({ status }) => status === 'cancelled')).toBe(true);
    const many = Array.from({ length: 101 }, () => 'open').join(',');
    expect((await get(`?status__in=${many}`)).status).toBe(422);
    expect((await get('?status__in=')).status).toBe(422);
    expect((await get('?status__in=open,lost')).body.errors[0].location).toEqual(['query', 'status__in']);
  });

  test('25: text is taken as it is, without wildcards', async () => {
    await insertMany(database.db, orders, [
      { org: 'north', owner_id: people.ann.id, item: '50%_ off', quantity: 1, total: '1.00' },
      { org: 'north', owner_id: people.ann.id, item: '50x off', quantity: 1, total: '1.00' },
    ]);
    const found = async (query: string) => (await get(`?${query}`, 'ann')).page.items.map(({ item }) => item);
    expect(await found('item__contains=50%25_')).toEqual(['50%_ off']);
    expect(await found('item__contains=OFF&item__starts=50X')).toEqual(['50x off']);
    expect(await found('search=50%25_%20off')).toEqual(['50%_ off']);
    expect(await found('search=off%2050x')).toEqual(['50x off']);
  });

  test.each([
    ['created_at__gte=yesterday', 'created_at__gte'],
    ['created_at__gte=2026-01-01', 'created_at__gte'],
    ['created_at__gte=2026-01-01T00:00:00.0005Z', 'created_at__gte'],
    ['created_at__lt=2026-01-01T00:00:00.123456%2B01:00', 'created_at__lt'],
    ['created_at__lt=2026-02-30T00:00:00Z', 'created_at__lt'],
    ['total__gte=ten', 'total__gte'],
    ['total=1.234', 'total'],
    ['status=lost', 'status'],
    ['due_at__isnull=maybe', 'due_at__isnull'],
    ['mine=perhaps', 'mine'],
    ['item=a&item=b', 'item'],
  ])('26: %s is 422 at its place', async (query, name) => {
    const { status, body } = await get(`?${query}`);
    expect([status, body.errors[0].location]).toEqual([422, ['query', name]]);
  });

  test('26: a moment finer than the column is refused rather than cut, in a parameter and in a body; zeros are not finer', async () => {
    const refused = await get('?created_at__gte=2026-01-01T00:00:00.0005Z');
    expect(refused.body.errors).toEqual([
      {
        location: ['query', 'created_at__gte'],
        code: 'invalid',
        message: expect.stringMatching(/^It must have millisecond precision or less, such as/),
      },
    ]);
    const body = await shop.call('bob', 'QUERY', 'orders', { where: { created_at: { gte: '2026-01-01T00:00:00.0005Z' } } });
    expect([body.status, body.body.errors[0].location]).toEqual([422, ['body', 'where', 'created_at', 'gte']]);
    // The first of January is a value of the column: half a millisecond later it is not, and neither bound moves it.
    const [whole, zeros] = await Promise.all(
      ['00.000', '00.000000'].map((seconds) => get(`?limit=1&created_at__gte=2026-01-01T00:00:${seconds}Z`)),
    );
    expect([whole!.status, zeros!.page.items, zeros!.page.count]).toEqual([200, whole!.page.items, whole!.page.count]);
  });

  test('27: a custom filter gets its parsed value and the caller, in the one statement of the page', async () => {
    const { result, count } = await counted(() => get('?mine=true&limit=100&item=thing%201'));
    expect([result.page.items.length, count]).toEqual([25, 1]);
    expect((await get('?mine=true', 'sue')).page.count).toBe(0);
    expect((await get('?mine=false', 'sue')).page.count).toBe(null);
  });

  test('27: a value that the schema of a custom filter takes and the column cannot hold is 422 at its place; no condition at all is 500', async () => {
    class LooseController extends CrudController(orderResource, {
      permission: isAuthenticated,
      filters: {
        amount: filter(z.int(), (value) => ({ quantity: { gte: value } })),
        called: filter(z.string(), (value) => ({ or: [{ item: value }, { customer: { is: { name: value } } }] })),
        nothing: filter(z.boolean(), () => undefined as never),
      },
    }) {}
    await using loose = await startShop({
      database: database.db,
      migrate: false,
      mount: { '/v1': { '/loose': LooseController, '/customers': CustomerController, '/items': ItemController } },
    });
    const invalid = (...location: string[]) => [{ location, code: 'invalid', message: 'No row can have this value.' }];
    const long = 'x'.repeat(121);
    for (const [name, value] of [
      ['amount', 2 ** 31],
      ['called', long],
    ] as const) {
      for (const path of ['loose', 'loose?limit=1']) {
        const { status, body } = await loose.call('bob', 'GET', `${path}${path.includes('?') ? '&' : '?'}${name}=${value}`);
        expect([name, status, body.errors]).toEqual([name, 422, invalid('query', name)]);
      }
      const { status, body } = await loose.call('bob', 'QUERY', 'loose', { where: { not: { [name]: value } } });
      expect([name, status, body.errors]).toEqual([name, 422, invalid('body', 'where', 'not', name)]);
    }
    expect((await loose.call('bob', 'GET', 'loose?amount=3&called=thing%202')).status).toBe(200);
    expect((await loose.call('bob', 'GET', 'loose?nothing=true')).status).toBe(500);
    expect((await loose.call('bob', 'QUERY', 'loose', { where: { nothing: true } })).status).toBe(500);
  });

  const counted = countQueries;

  test('28: QUERY asks what GET cannot; six levels are 422; next works by repeating the request', async () => {
    const body = { where: { or: [{ status: 'paid' }, { not: { total: { gte: '2.00' } } }] }, ordering: ['total'], limit: 10 };
    const { status, body: page } = await shop.call('bob', 'QUERY', 'orders', body);
    expect(status).toBe(200);
    expect(page.items.every((each: { status: string; total: string }) => each.status === 'paid' || Number(each.total) < 2)).toBe(true);
    const second = await shop.call('bob', 'QUERY', `orders${page.next}`, body);
    expect([second.status, second.body.items.length]).toEqual([200, 10]);
    expect(second.body.items.filter(({ id }: { id: string }) => ids(page).includes(id))).toEqual([]);
    expect((await shop.call('bob', 'POST', 'orders/query', body)).body).toEqual(page);
    let deep: object = { status: 'paid' };
    for (let level = 0; level < 5; level += 1) deep = { and: [deep] };
    expect((await shop.call('bob', 'QUERY', 'orders', { where: deep })).status).toBe(422);
    expect(
      (await shop.call('bob', 'QUERY', 'orders', { where: { or: Array.from({ length: 51 }, () => ({ status: 'paid' })) } })).status,
    ).toBe(422);
    for (const where of [
      { stauts: 'x' },
      { status: { like: 'x' } },
      { margin: { gte: '1' } },
      { owner_id: people.ann.id },
      { quantity: 1 },
      [],
      'x',
      { or: [] },
      { customer: { is: { credit: { gte: '1' } } } },
    ]) {
      const refused = await shop.call('bob', 'QUERY', 'orders', { where });
      expect([JSON.stringify(where), refused.status]).toEqual([JSON.stringify(where), 422]);
    }
    expect((await shop.call('bob', 'QUERY', 'orders', { where: { customer: { is: { name: { contains: 'x' } } } } })).status).toBe(200);
    for (const customer of [null, 'x', { is: null }, { is: {}, not: {} }]) {
      const { body: problem } = await shop.call('bob', 'QUERY', 'orders', { where: { customer } });
      expect(problem.errors[0].message).toMatch(/A relation takes \{ "is"|Unknown field/);
    }
  });

  test('34: in a QUERY a filter that the caller may not see is refused as a misspelling is, and no hint names it', async () => {
    const refusal = async (where: object, person: Person = 'bob') =>
      (await shop.call(person, 'QUERY', 'orders', { where })).body.errors.map((each: { code: string; message: string }) => [
        each.code,
        each.message,
      ]);
    const unknown = [['unknown_field', 'Unknown filter.']];
    for (const name of ['margin', 'marginn', 'nopexy']) {
      expect(await refusal({ [name]: { gte: '1' } })).toEqual(unknown);
      expect(await refusal({ [name]: { nope: '1' } })).toEqual(unknown);
      expect(await refusal({ or: [{ not: { [name]: '1' } }] })).toEqual(unknown);
    }
    for (const name of ['credit', 'creditt', 'nopexy']) expect(await refusal({ customer: { is: { [name]: '1' } } })).toEqual(unknown);
    expect(await refusal({ marginn: '1' }, 'sue')).toEqual([['unknown_field', 'Unknown filter. Did you mean "margin"?']]);
    expect(await refusal({ totl: '1' })).toEqual([['unknown_field', 'Unknown filter. Did you mean "total"?']]);
    expect((await shop.call('bob', 'QUERY', 'orders', { limt: 1 })).body.errors).toEqual([
      { location: ['body', 'limt'], code: 'unknown_field', message: 'Unknown field. Did you mean "limit"?' },
    ]);
  });

  test('29: two filters, an ordering and a to-one expansion are one statement; a to-many one more', async () => {
    const one = await counted(() => get('?status=open&total__gte=1&ordering=-total&expand=customer&limit=100', 'ann'));
    expect([one.result.status, one.count]).toEqual([200, 1]);
    const more = await counted(() => get('?status=open&total__gte=1&expand=customer,items,items.product&limit=50', 'ann'));
    expect([more.result.status, more.count]).toEqual([200, 2]);
  });

  describe('expansions', () => {
    let order: string;
    beforeAll(async () => {
      const [customer] = await insertMany(database.db, customers, [{ org: 'north', name: 'Acme' }]);
      const [lamp] = await insertMany(database.db, products, [{ title: 'Lamp', price: '9.99' }]);
      const made = await insertMany(
        database.db,
        orders,
        Array.from({ length: 3 }, (_, index) => ({
          org: 'north',
          owner_id: people.ann.id,
          item: `with items ${index}`,
          quantity: 1,
          total: '1.00',
          customer_id: customer!.id,
        })),
      );
      order = made[0]!.id;
      for (const { id } of made.slice(0, 2)) {
        await insertMany(
          database.db,
          orderItems,
          Array.from({ length: id === order ? 9 : 2 }, (_, index) => ({
            order_id: id,
            sku: `s${9 - index}`,
            amount: index,
            product_id: lamp!.id,
            cancelled: index === 0,
          })),
        );
      }
    });

    test('37: to-many rows in their order, at most the limit per parent, `_more` where there are more, one statement', async () => {
      const { result, count } = await counted(() => get('?item__starts=with%20items&expand=items.product,customer&ordering=item', 'ann'));
      expect(count).toBe(2);
      const [first, second, third] = result.page.items as { items: { sku: string; product: object }[]; items_more?: boolean }[];
      expect(first!.items.map(({ sku }) => sku)).toEqual(['s1', 's2', 's3', 's4', 's5']);
      expect(first!.items_more).toBe(true);
      expect(first!.items[0]!.product).toMatchObject({ title: 'Lamp', price: '9.99' });
      expect([second!.items.map(({ sku }) => sku), second!.items_more]).toEqual([['s8'], undefined]);
      expect([third!.items, third!.items_more]).toEqual([[], undefined]);
    });

    test('39: fields reach into what is expanded, and only there', async () => {
      expect((await get(`/${order}?fields=customer.name`, 'ann')).status).toBe(422);
      expect((await get(`/${order}?fields=customer.name,items.sku&expand=customer,items`, 'ann')).body).toEqual({
        id: order,
        customer: { name: 'Acme' },
        items: ['s1', 's2', 's3', 's4', 's5'].map((sku) => ({ sku })),
        items_more: true,
      });
    });

    test('38: too deep, too many, and more than 10,000 rows', async () => {
      const eleven = Array.from({ length: 11 }, (_, index) => `r${index}`).join();
      for (const url of ['?expand=a.b.c.d', `?expand=${eleven}`]) {
        const { status, body } = await get(url, 'ann');
        expect([status, body.code]).toEqual([422, 'expand_too_costly']);
      }
      const hundredEach = { edges: [{ edge: { kind: 'many', limit: 100 }, shape: { edges: [] } }] } as unknown as Shape;
      expect(() => refuseCostlyExpand(['items'], hundredEach, 100, usualLimits)).not.toThrow();
      expect(() => refuseCostlyExpand(['items'], hundredEach, 101, usualLimits)).toThrow(
        expect.objectContaining({ code: 'expand_too_costly', status: 422 }),
      );
      const unknown = await get('?expand=custmer', 'ann');
      expect([unknown.status, unknown.body.errors[0].code]).toEqual([422, 'unknown_field']);
    });

    test('40: every kind of column has the same text in a row and inside an expansion', async () => {
      const values = {
        big: 9223372036854775807n,
        blob: new Uint8Array([0, 255]),
        data: { a: [1, null] },
        labels: ['x', 'y'],
        due_at: new Date(Date.UTC(2026, 1, 2, 3, 4, 5, 6)),
      };
      await update(database.db, orders, order, values);
      const plain = (await get(`/${order}`, 'ann')).body;
      expect(plain).toMatchObject({
        big: '9223372036854775807',
        blob: 'AP8=',
        data: { a: [1, null] },
        labels: ['x', 'y'],
        due_at: '2026-02-02T03:04:05.006Z',
        total: '1.00',
      });
      const names = ['big', 'blob', 'data', 'labels', 'due_at', 'total', 'created_at', 'version'];
      const wanted = Object.fromEntries(names.map((name) => [name, plain[name] as unknown]));
      // The whole order has a rule about the row, so that it is read as code has it; these columns alone come in their wire form.
      for (const fields of ['', `&fields=${names.map((name) => `order.${name}`).join()}`]) {
        const { body } = await shop.call('ann', 'GET', `items?limit=100&expand=order${fields}`);
        const found = (body.items as { order: Record<string, unknown> | null }[]).filter((each) => each.order?.['big'] === plain.big);
        expect(found.length).toBeGreaterThan(0);
        for (const each of found) expect(each.order).toMatchObject(wanted);
      }
    });
  });

  test('30: the first and later pages are read from the index of owner and order', async () => {
    const first = await get('?limit=5&ordering=-created_at&fields=id', 'bob');
    for (const url of ['?limit=5&ordering=-created_at&fields=id', first.page.next!]) {
      const [sql = ''] = await observed(() => get(url));
      const at = new Date(Date.UTC(2026, 0, 3));
      const values = ['north', people.bob.id, ...(sql.includes(') <') ? [at, people.bob.id] : []), 6];
      const plan = await explain(sql, values);
      expect(plan).toMatch(/orders_org_owner_id_created_at/);
      expect(plan).not.toMatch(/Sort|TEMP B-TREE/);
    }
  });

  async function explain(sql: string, values: readonly unknown[]): Promise<string> {
    if (database.dialect === 'sqlite') {
      const plan = await database.db.query<{ detail: string }>(`explain query plan ${sql}`, values);
      return plan.map(({ detail }) => detail).join('\n');
    }
    return database.db.transaction(async (tx) => {
      await tx.query('set local enable_seqscan = off');
      await tx.query('set local enable_bitmapscan = off');
      const plan = await tx.query<{ 'QUERY PLAN': string }>(`explain ${sql}`, values);
      return plan.map((row) => row['QUERY PLAN']).join('\n');
    });
  }

  const observed = async (work: () => Promise<unknown>) => {
    const texts: string[] = [];
    await observeQueries(({ sql }) => void texts.push(sql), work);
    return texts;
  };
});

describeDatabases('the first list of an application', (database) => {
  test('29: needs one statement, as every other', async () => {
    await using shop = await startShop({ database: database.db });
    await shop.call('ann', 'POST', 'orders', { item: 'Lamp', quantity: 1, total: '5.00' });
    const { count, result } = await countQueries(() => shop.call('ann', 'GET', 'orders?expand=customer&status=open&ordering=-total'));
    expect([result.status, result.body.items.length, count]).toEqual([200, 1, 1]);
  });
});
