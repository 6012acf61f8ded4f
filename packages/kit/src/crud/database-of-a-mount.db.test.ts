import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startShop, type ShopApp } from '../../test/crud/shop.ts';
import { audit } from '../contrib/audit/index.ts';
import { createTable, migration, model, openDatabase, t, type Database } from '../db/index.ts';
import { filledText } from '../options/value-rule.ts';
import { controllerOptions } from '../http/declare/controller-options.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { createSqliteDatabase, type DatabasePlace } from '../testing/test-database.ts';
import { count, CrudController, many, one, resource } from './index.ts';

const boards = model('boards', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), name: t.text(40) });
const cardColumns = { id: t.uuidv7().pk(), board_id: t.ref('boards'), title: t.text(40) };
const cards = model('cards', { ...cardColumns, board_id: t.ref(() => boards) });
const boardResource = resource(boards, {
  owner: 'owner_id',
  relations: { cards: many(() => cards, 'board_id') },
  nested: { cards: { input: ['title'] } },
});
const cardResource = resource(cards, { rows: () => ({ board: { is: {} } }), relations: { board: one(() => boards, 'board_id') } });
const offered = {
  permission: isAuthenticated,
  expand: ['cards'],
  filters: { name: ['eq'] },
  bulk: { create: true },
  export: ['jsonl'],
  import: { formats: ['jsonl'] },
  stats: { metrics: { boards: count() } },
} as const;
class Boards extends CrudController(boardResource, offered) {}
class ShopBoards extends CrudController(boardResource, { ...offered, using: 'shop' }) {}
class ShopCards extends CrudController(cardResource, { permission: isAuthenticated, parent: { relation: 'board' }, using: 'shop' }) {}
/** As a module brings one: apps set the static. */
class ModuleBoards extends CrudController(boardResource, offered) {
  static readonly using: string = 'default';
  static readonly [controllerOptions] = { using: filledText };
}
class AppBoards extends ModuleBoards {
  static override readonly using: string = 'shop';
}
const tables = [createTable('boards', boards.columns), createTable('cards', cardColumns)];
const module = { name: 'desk', models: [boards, cards], migrations: [migration('0001_initial', tables)], databases: ['default', 'shop'] };

describeDatabases('a controller in another database', (database) => {
  let place: DatabasePlace;
  let other: Database;
  let shop: ShopApp;
  beforeAll(async () => {
    place = await createSqliteDatabase();
    other = await openDatabase(place.url, { name: 'shop' });
    shop = await startShop({
      database: { default: database.db, shop: other },
      mount: {
        '/v1': {
          '/boards': Boards,
          '/shop': ShopBoards,
          '/shop/:board_id/cards': ShopCards,
          '/static': AppBoards,
          '/module': ModuleBoards,
        },
      },
      modules: [module],
      resources: [cardResource],
    });
  });
  afterAll(async () => {
    await shop.close();
    await other.close();
    await place.remove();
  });
  const names = async (path: string, person: 'ann' | 'bob' = 'ann'): Promise<string[]> =>
    ((await shop.call(person, 'GET', path)).body.items as { name: string }[]).map(({ name }) => name).toSorted();

  test('every operation reads and writes there, with the rows that relations lead to', async () => {
    const here = await shop.call('ann', 'POST', 'boards', { name: 'here', cards: [{ title: 'h' }] });
    const there = await shop.call('ann', 'POST', 'shop', { name: 'there', cards: [{ title: 't' }] });
    expect([here.status, there.status]).toEqual([201, 201]);
    await shop.call('ann', 'POST', 'shop/bulk', { items: [{ name: 'bulk' }] });
    const imported = await shop.call('ann', 'POST', 'shop/import', '{"name":"imported"}\n', { 'content-type': 'application/x-ndjson' });
    expect(imported.status).toBe(201);
    expect(await names('boards')).toEqual(['here']);
    for (const path of ['shop', 'static']) expect(await names(path)).toEqual(['bulk', 'imported', 'there']);
    expect(await names('module')).toEqual(['here']);
    expect(await names('shop', 'bob')).toEqual([]);
    const { id } = there.body as { id: string };
    expect((await shop.call('ann', 'GET', `shop/${id}?expand=cards`)).body.cards).toMatchObject([{ title: 't' }]);
    expect((await shop.call('ann', 'GET', `boards/${id}`)).status).toBe(404);
    expect((await shop.call('ann', 'GET', `shop/${id}/cards`)).body.items).toMatchObject([{ title: 't' }]);
    expect((await shop.call('bob', 'GET', `shop/${id}/cards`)).status).toBe(404);
    expect((await shop.call('ann', 'POST', `shop/${id}/cards`, { title: 'more' })).status).toBe(201);
    expect((await shop.call('ann', 'PATCH', `shop/${id}`, { name: 'changed' })).body.name).toBe('changed');
    expect((await shop.call('ann', 'QUERY', 'shop', { where: { name: 'changed' } })).body.count).toBe(1);
    expect((await shop.call('ann', 'GET', 'shop/stats')).body.items).toEqual([{ boards: 3 }]);
    const file = await shop.inject({ method: 'GET', url: '/v1/shop/export', headers: { 'x-user': 'ann' } });
    expect(file.body.trim().split('\n')).toHaveLength(3);
    expect(await other.query('select name from boards where id = $1', [id])).toEqual([{ name: 'changed' }]);
    expect(await database.db.query('select name from boards')).toEqual([{ name: 'here' }]);
    const cardId = (await shop.call('ann', 'GET', `shop/${id}/cards`)).body.items[0].id as string;
    expect((await shop.call('ann', 'DELETE', `shop/${id}/cards/${cardId}`)).status).toBe(204);
  });
});

describe('a database that a controller cannot use', () => {
  const start = (Wrong: new () => InstanceType<typeof Boards>, modules: readonly object[] = []) =>
    startShop({
      mount: { '/v1': { '/boards': Wrong as never } },
      modules: [{ ...module, databases: ['default'] }, ...modules] as never,
      resources: [cardResource],
    });

  test('an unknown one is a problem at startup, with a hint', async () => {
    class Lost extends CrudController(boardResource, { ...offered, using: 'defaul' }) {}
    class LostStatic extends ModuleBoards {
      static override readonly using: string = 'defaul';
    }
    for (const Wrong of [Lost, LostStatic])
      await expect(start(Wrong as never)).rejects.toThrow(/rows are in the database "defaul".*Did you mean "default"\?/s);
  });

  test('one without the tables of the audit log is a problem, unless nothing is recorded', async () => {
    await expect(start(ShopBoards as never, [audit()])).rejects.toThrow(
      /ShopBoards: its rows are in the database "shop", where audit\(\) has no tables/,
    );
  });

  test('an attribute of a plain controller, and an empty name, do nothing but stop the start', async () => {
    class Static extends CrudController(boardResource, offered) {
      static readonly using: string = 'shop';
    }
    await expect(start(Static as never)).rejects.toThrow(/using/);
    expect(() => CrudController(boardResource, { ...offered, using: '' })).toThrow(/using is ""/);
  });
});
