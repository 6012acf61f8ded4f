import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { byName, people, type Person, startShop, type ShopApp } from '../../test/crud/shop.ts';
import { createTable, migration, model, t } from '../db/index.ts';
import { countQueries } from '../db/engine/query-observer.ts';
import { whereTerms } from '../db/sql/where/where-terms.ts';
import { parseWhere } from '../db/sql/where/parse-where.ts';
import { insert } from '../db/index.ts';
import { isAuthenticated, isStaff } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { testApp } from '../testing/test-app.ts';
import { longRead } from './read/long-read.ts';
import { count, CrudController, crudOf, many, one, resource } from './index.ts';

const indexes = [{ columns: ['owner_id', 'id'], where: "owner_id <> ''", name: 'tasks_of_owner' }];
const taskColumns = {
  id: t.uuidv7().pk(),
  owner_id: t.text(80).readOnly().dbDefault(''),
  tenant_key: t.text(80).readOnly().dbDefault(''),
  title: t.text(40),
  list_id: t.ref('lists').nullable(),
};
const lists = model('lists', { id: t.uuidv7().pk(), name: t.text(40) });
const tasks = model('tasks', { ...taskColumns, list_id: t.ref(() => lists).nullable() }, { indexes });
const taskResource = resource(tasks, {
  owner: { column: 'owner_id', none: '', unless: isStaff },
  tenant: { column: 'tenant_key', none: '', unless: isStaff },
  input: ['title', 'list_id'],
  relations: { list: one(() => lists, 'list_id') },
});
const listResource = resource(lists, { unscoped: true, relations: { tasks: many(() => tasks, 'list_id') } });
class Tasks extends CrudController(taskResource, {
  permission: isAuthenticated,
  filters: { title: ['eq'] },
  bulk: { create: true, update: true, destroy: true },
  export: ['jsonl'],
  import: { formats: ['jsonl'] },
  stats: { metrics: { tasks: count() } },
}) {}
class Lists extends CrudController(listResource, { permission: isAuthenticated, expand: ['tasks'] }) {}

const tables = [createTable('lists', lists.columns), createTable('tasks', taskColumns, { indexes })];
const module = { name: 'work', models: [lists, tasks], migrations: [migration('0001_initial', tables)] };

describeDatabases('rows of nobody', (database) => {
  let shop: ShopApp;
  let list: string;
  beforeAll(async () => {
    shop = await startShop({ database: database.db, mount: { '/v1': { '/tasks': Tasks, '/lists': Lists } }, modules: [module] });
    list = (await shop.call('ann', 'POST', 'lists', { name: 'all' })).body.id;
    const row = (title: string, owner_id: string, tenant_key: string) => ({ title, owner_id, tenant_key, list_id: list });
    await database.db.transaction(async (tx) => {
      for (const each of [
        row('of ann in north', people.ann.id, 'north'),
        row('of ann in south', people.ann.id, 'south'),
        row('of ann, no tenant', people.ann.id, ''),
        row('of nil, no tenant', people.nil.id, ''),
        row('of nil in north', people.nil.id, 'north'),
        row('of nobody in north', '', 'north'),
        row('of nobody', '', ''),
      ])
        await insert(tx, tasks, each);
    });
  });
  afterAll(() => shop.close());

  const titles = (items: readonly { readonly title: string }[]): string[] => items.map(({ title }) => title).toSorted();
  const seen: readonly (readonly [Person, readonly string[]])[] = [
    ['ann', ['of ann in north']],
    ['bob', []],
    ['nil', ['of nil, no tenant']],
    [
      'sue',
      [
        'of ann in north',
        'of ann in south',
        'of ann, no tenant',
        'of nil in north',
        'of nil, no tenant',
        'of nobody',
        'of nobody in north',
      ],
    ],
  ];

  test.each(seen)('%s reaches the same rows by every path: %j', async (person, expected) => {
    const listed = (await shop.call(person, 'GET', 'tasks')).body;
    expect([titles(listed.items), listed.count]).toEqual([expected, expected.length]);
    const queried = await shop.call(person, 'QUERY', 'tasks', { where: { not: { title: 'x' } } });
    expect(titles(queried.body.items)).toEqual(expected);
    const exported = await shop.inject({ method: 'GET', url: '/v1/tasks/export?format=jsonl', headers: { 'x-user': person } });
    expect(titles(exported.body.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as { title: string }])))).toEqual(
      expected,
    );
    expect((await shop.call(person, 'GET', 'tasks/stats')).body.items).toEqual([{ tasks: expected.length }]);
    const expanded = await shop.call(person, 'GET', `lists/${list}?expand=tasks`);
    expect(titles(expanded.body.tasks)).toEqual(expected);
    const all = (await shop.call('sue', 'GET', 'tasks')).body.items as { id: string; title: string }[];
    for (const { id, title } of all) {
      const isSeen = expected.includes(title);
      expect([title, (await shop.call(person, 'GET', `tasks/${id}`)).status]).toEqual([title, isSeen ? 200 : 404]);
      const written = await shop.call(person, 'PATCH', `tasks/${id}`, { title });
      expect([title, written.status]).toEqual([title, isSeen ? 200 : 404]);
      const bulk = await shop.call(person, 'POST', 'tasks/bulk-update', { items: [{ id, title }] });
      expect([title, bulk.status]).toEqual([title, isSeen ? 200 : 404]);
    }
  });

  test('programs see as much: a caller without a tenant has the rows of none', async () => {
    const user = { id: people.nil.id, username: 'nil', email: null, is_active: true, is_staff: false, is_superuser: false };
    const of = (tenant: string | null) => crudOf(shop.app, taskResource).as({ user, tenant });
    expect(titles(await of(null).rows())).toEqual(['of nil, no tenant']);
    expect(titles(await of('north').rows())).toEqual(['of nil in north']);
    const nobody = { ...user, id: '' };
    expect(await crudOf(shop.app, taskResource).as({ user: nobody, tenant: null }).rows()).toEqual([]);
  });

  test('new rows belong to their maker, and to no tenant without one; by bulk and import, too', async () => {
    for (const [person, tenant] of [
      ['bob', 'north'],
      ['nil', ''],
    ] as const) {
      const one = (await shop.call(person, 'POST', 'tasks', { title: `new of ${person}` })).body;
      const bulk = (await shop.call(person, 'POST', 'tasks/bulk', { items: [{ title: 'new by bulk' }] })).body.items[0];
      const imported = await shop.call(person, 'POST', 'tasks/import', '{"title":"new by import"}\n', {
        'content-type': 'application/x-ndjson',
      });
      expect(imported.status).toBe(201);
      const rows = (await shop.call(person, 'GET', 'tasks')).body.items as { id: string; owner_id: string; tenant_key: string }[];
      const made = rows.filter(({ id }) => [one.id, bulk.id].includes(id));
      expect(made.length).toBe(2);
      expect(rows.every((row) => row.owner_id === people[person].id && row.tenant_key === tenant)).toBe(true);
      for (const body of [
        { title: 'x', owner_id: '' },
        { title: 'x', tenant_key: '' },
      ])
        expect((await shop.call(person, 'POST', 'tasks', body)).status).toBe(422);
    }
  });

  test('a list of an owner is read from the index that has no rows of nobody', async () => {
    const { queries } = await countQueries(() => shop.call('nil', 'GET', 'tasks?limit=5'));
    const { sql } = queries.find((query) => query.sql.includes('order by'))!;
    expect(sql).toMatch(/"?owner_id"? <> ''/);
    const values = [people.nil.id, 6];
    const plan =
      database.dialect === 'sqlite'
        ? await database.db.query(`explain query plan ${sql}`, values)
        : await database.db.transaction(async (tx) => {
            await tx.query('set local enable_seqscan = off');
            await tx.query('set local enable_bitmapscan = off');
            return tx.query(`explain ${sql}`, values);
          });
    expect(JSON.stringify(plan)).toContain('tasks_of_owner');
    expect(JSON.stringify(plan)).not.toMatch(/sort|temp b-tree/i);
    const terms = whereTerms(parseWhere(tasks, { owner_id: { eq: 'a', ne: '' } }), database.dialect);
    expect(longRead({ table: tasks.table, terms, ordering: [{ column: 'id', descending: true }], dialect: database.dialect })).toBe(
      undefined,
    );
    const unfilled = whereTerms(parseWhere(tasks, { owner_id: 'a' }), database.dialect);
    expect(
      longRead({ table: tasks.table, terms: unfilled, ordering: [{ column: 'id', descending: true }], dialect: database.dialect }),
    ).toBeDefined();
  });

  test('an app without tenants has the rows of all of them', async () => {
    const mount = { '/v1': { '/tasks': Tasks, '/lists': Lists } };
    await using other = await testApp({ database: database.db, modules: [module], authenticators: [byName], mount });
    const call = async (method: 'GET' | 'POST', payload?: object) =>
      (await other.inject({ method, url: '/v1/tasks', headers: { 'x-user': 'ann' }, ...(payload && { payload }) })).json();
    expect(titles((await call('GET')).items)).toEqual(['of ann in north', 'of ann in south', 'of ann, no tenant']);
    expect((await call('POST', { title: 'new' })).tenant_key).toBe('');
  });
});

describeDatabases('a tenant with an exception', (database) => {
  const strict = resource(tasks, { tenant: { column: 'tenant_key', unless: isStaff }, input: ['title'] });
  class Strict extends CrudController(strict, { permission: isAuthenticated }) {}
  class StrictLists extends CrudController(resource(lists, { unscoped: true }), { permission: isAuthenticated }) {}

  test('callers that it admits need no tenant to read; new rows need one', async () => {
    let tenant: string | null = null;
    await using shop = await startShop({
      database: database.db,
      mount: { '/v1': { '/tasks': Strict, '/lists': StrictLists } },
      modules: [module],
      tenant: () => tenant,
    });
    await insert(database.db, tasks, { title: 'one', tenant_key: 'south', owner_id: '', list_id: null });
    expect((await shop.call('sue', 'GET', 'tasks')).body.count).toBe(1);
    expect((await shop.call('sue', 'POST', 'tasks', { title: 'x' })).body.code).toBe('tenant_required');
    expect((await shop.call('ann', 'GET', 'tasks')).body.code).toBe('tenant_required');
    expect((await shop.inject('/v1/tasks')).statusCode).toBe(401);
    tenant = 'north';
    expect((await shop.call('ann', 'GET', 'tasks')).body.count).toBe(0);
    expect((await shop.call('sue', 'POST', 'tasks', { title: 'x' })).body.tenant_key).toBe('north');
  });
});

describe('the rules of a tenant and an owner', () => {
  test.each<[object, RegExp]>([
    [{ column: 'owner_id', non: '' }, /unknown option "owner.non". Did you mean "none"\?/],
    [{ column: 'owner_id', none: null }, /owner.none is null/],
    [{ column: 'owner_id', none: '-' }, /owner.none is "-"/],
    [{ none: '' }, /owner.column/],
  ])('%j does not start', (owner, message) => {
    expect(() => resource(tasks, { owner } as never)).toThrow(message);
  });

  test('none needs a text column', async () => {
    const cards = model('cards', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly() });
    class Cards extends CrudController(resource(cards, { owner: { column: 'owner_id', none: '' } }), { permission: isAuthenticated }) {}
    await expect(startShop({ mount: { '/v1': { '/cards': Cards } }, modules: [] })).rejects.toThrow(
      /owner: \{ none: '' \} needs a text column, but "owner_id" is uuid/,
    );
  });
});
