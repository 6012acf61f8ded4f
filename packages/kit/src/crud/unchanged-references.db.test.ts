import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { people, startShop, type ShopApp } from '../../test/crud/shop.ts';
import { createTable, insert, migration, model, t, versioned } from '../db/index.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, many, one, resource } from './index.ts';

const firms = model('firms', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), name: t.text(20) });
const cards = model('cards', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  code: t.text(20).unique(),
  title: t.text(20),
  firm_id: t.ref(() => firms).nullable(),
  ...versioned(),
});
const lines = model('lines', {
  id: t.uuidv7().pk(),
  card_id: t.ref(() => cards),
  firm_id: t.ref(() => firms).nullable(),
  text: t.text(20),
});
const firmResource = resource(firms, { owner: 'owner_id' });
const lineResource = resource(lines, {
  rows: () => ({ card: { is: {} } }),
  relations: { card: one(() => cards, 'card_id'), firm: one(() => firms, 'firm_id') },
});
const cardResource = resource(cards, {
  owner: 'owner_id',
  version: 'version',
  relations: { firm: one(() => firms, 'firm_id'), lines: many(() => lines, 'card_id', { limit: 5 }) },
  nested: { lines: { input: ['text', 'firm_id'], max: 5 } },
});
const options = { permission: isAuthenticated, expand: ['firm', 'lines'], import: { formats: ['jsonl'], by: 'code' } } as const;
class CardController extends CrudController(cardResource, { ...options, bulk: { update: true } }) {}
class PartialController extends CrudController(cardResource, { ...options, bulk: { update: true, mode: 'partial' } }) {}

describeDatabases('a reference that does not change', (database) => {
  let app: ShopApp;
  let firm: string;
  let other: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever the server answered
  let card: any;
  beforeAll(async () => {
    app = await startShop({
      database: database.db,
      mount: { '/v1': { '/cards': CardController, '/partial': PartialController } },
      modules: [
        {
          name: 'cards',
          models: [firms, cards, lines],
          resources: [firmResource, lineResource],
          migrations: [
            migration('0001_initial', [
              createTable('firms', firms.columns),
              createTable('cards', { ...cards.columns, firm_id: t.ref('firms').nullable() }),
              createTable('lines', { ...lines.columns, card_id: t.ref('cards'), firm_id: t.ref('firms').nullable() }),
            ]),
          ],
        },
      ],
    });
    firm = (await insert(database.db, firms, { owner_id: people.bob.id, name: 'of bob' })).id;
    other = (await insert(database.db, firms, { owner_id: people.bob.id, name: 'of bob, too' })).id;
  });
  beforeEach(async () => {
    await database.db.query('delete from lines');
    await database.db.query('delete from cards');
    const { id } = await insert(database.db, cards, { owner_id: people.ann.id, code: 'a', title: 'one', firm_id: firm });
    await insert(database.db, lines, { card_id: id, text: 'line', firm_id: firm });
    card = (await app.call('ann', 'GET', `cards/${id}?expand=firm,lines`)).body;
  });
  afterAll(() => app.close());

  test('the caller sees the row and not what it refers to', () => {
    expect(card).toMatchObject({ firm_id: firm, firm: null, lines: [{ firm_id: firm }] });
  });

  test('PUT of exactly what was read is accepted; another reference is 422', async () => {
    const { id, owner_id: _owner, version: _version, firm: _firm, lines: read, ...body } = card;
    const same = await app.call('ann', 'PUT', `cards/${id}`, body);
    expect([same.status, same.body.firm_id]).toEqual([200, firm]);
    const children = read.map(({ id: key, text, firm_id }: Record<string, string>) => ({ id: key, text, firm_id }));
    expect((await app.call('ann', 'PUT', `cards/${id}`, { ...body, lines: children })).status).toBe(200);
    const changed = await app.call('ann', 'PUT', `cards/${id}`, { ...body, firm_id: other });
    expect([changed.status, changed.body.errors]).toMatchObject([422, [{ location: ['body', 'firm_id'], code: 'unknown_reference' }]]);
    const nested = await app.call('ann', 'PUT', `cards/${id}`, { ...body, lines: [{ ...children[0], firm_id: other }] });
    expect([nested.status, nested.body.errors]).toMatchObject([
      422,
      [{ location: ['body', 'lines', 0, 'firm_id'], code: 'unknown_reference' }],
    ]);
  });

  test('PATCH, bulk and import accept it, too', async () => {
    const { id } = card;
    const items = [{ id, title: 'two', firm_id: firm }];
    expect((await app.call('ann', 'PATCH', `cards/${id}`, { firm_id: firm })).status).toBe(200);
    expect((await app.call('ann', 'POST', 'cards/bulk-update', { items })).status).toBe(200);
    expect((await app.call('ann', 'POST', 'cards/bulk-update', { ids: [id], changes: { firm_id: firm } })).status).toBe(200);
    expect((await app.call('ann', 'POST', 'partial/bulk-update', { items })).body.results).toMatchObject([{ status: 200 }]);
    const imported = async (line: object) => {
      const headers = { 'x-user': 'ann', 'content-type': 'application/x-ndjson' };
      return app.inject({ method: 'POST', url: '/v1/cards/import?mode=upsert', headers, payload: JSON.stringify(line) });
    };
    expect((await imported({ code: 'a', title: 'three', firm_id: firm })).statusCode).toBe(201);
    expect((await imported({ code: 'a', title: 'three', firm_id: other })).statusCode).toBe(422);
    expect((await imported({ code: 'b', title: 'new', firm_id: firm })).statusCode).toBe(422);
    expect(await database.db.query('select title, firm_id from cards')).toEqual([{ title: 'three', firm_id: firm }]);
  });
});
