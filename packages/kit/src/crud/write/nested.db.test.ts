import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { board as boardModule, boards, cards, comments, told } from '../../../test/crud/board.ts';
import { startShop, type Person, type ShopApp } from '../../../test/crud/shop.ts';
import { observeQueries } from '../../db/engine/query-observer.ts';
import { isAuthenticated, isStaff } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { type Change, CrudController, many, one, resource, writableBy } from '../index.ts';

const onChange = (change: unknown) => void told.changes.push(change as Change);
const boardPolicy = resource(boards, {
  owner: 'owner_id',
  version: 'version',
  relations: { cards: many(() => cards, 'board_id', { order: ['title'], limit: 10, where: { done: false } }) },
  nested: { cards: { input: ['title', 'points'], missing: 'delete', max: 10 } },
  events: true,
  onChange,
});
const cardPolicy = resource(cards, {
  rows: () => ({ board: { is: {} } }),
  version: 'version',
  relations: { board: one(() => boards, 'board_id'), comments: many(() => comments, 'card_id', { limit: 5 }) },
  nested: { comments: { input: ['text'] } },
  fields: { points: writableBy(isStaff.not()) },
  hooks: {
    async create({ input }, next) {
      if (input.title === 'broken') throw new Error('no');
      return next(input);
    },
  },
  onChange,
});
const commentPolicy = resource(comments, { rows: () => ({ card: { is: {} } }), relations: { card: one(() => cards, 'card_id') } });
class Boards extends CrudController(boardPolicy, { permission: isAuthenticated, expand: ['cards'] }) {}
class Cards extends CrudController(cardPolicy, { permission: isAuthenticated, expand: ['comments'] }) {}

describeDatabases('nested writes', (database) => {
  let shop: ShopApp;
  beforeAll(async () => {
    shop = await startShop({
      database: database.db,
      mount: { '/v1': { '/boards': Boards, '/cards': Cards } },
      modules: [boardModule],
      resources: [commentPolicy],
    });
  });
  beforeEach(() => {
    for (const list of Object.values(told)) list.length = 0;
  });
  afterAll(() => shop.close());

  interface Card {
    id: string;
    title: string;
    points: number;
    version: number;
  }
  const send = (method: string, path: string, body: object, person: Person = 'ann') => shop.call(person, method, path, body);
  const make = async (titles: readonly string[] = ['a', 'b', 'c'], person: Person = 'ann') => {
    const { status, body } = await send(
      'POST',
      'boards?expand=cards',
      { title: 'plan', cards: titles.map((title) => ({ title })) },
      person,
    );
    expect(status).toBe(201);
    return body as { id: string; version: number; cards: Card[] };
  };
  const shown = async (id: string) =>
    (await shop.call('ann', 'GET', `boards/${id}?expand=cards`)).body as { version: number; cards: Card[] };
  const forget = () => {
    for (const list of Object.values(told)) list.length = 0;
  };

  test('73: POST makes parent and children; PUT makes, changes and removes children', async () => {
    const { id, cards: made } = await make();
    expect(made.map(({ title }) => title)).toEqual(['a', 'b', 'c']);
    expect(told.changes.map(({ operation, via }) => `${operation} ${via}`)).toEqual(['create single', ...made.map(() => 'create nested')]);
    forget();
    const put = await send('PUT', `boards/${id}?expand=cards`, {
      title: 'plan 2',
      cards: [{ id: made[1]?.id, title: 'b2', points: 3 }, { title: 'd' }],
    });
    expect([put.status, put.body.title, put.body.cards.map(({ title, points }: Card) => [title, points])]).toEqual([
      200,
      'plan 2',
      [
        ['b2', 3],
        ['d', 0],
      ],
    ]);
    expect(put.body.cards[0]).toMatchObject({ id: made[1]?.id, version: 2 });
    expect(told.changes.map(({ operation, via }) => `${operation} ${via}`).toSorted()).toEqual([
      'create nested',
      'destroy nested',
      'destroy nested',
      'update nested',
      'update single',
    ]);
    expect(told.audited).toHaveLength(5);
    expect((await shop.call('ann', 'GET', `cards/${made[0]?.id}`)).status).toBe(404);
  });

  test('73: PUT needs the member where it would delete the children it does not name; nothing is deleted by leaving it out', async () => {
    const { id, version } = await make();
    const { status, body } = await send('PUT', `boards/${id}`, { title: 'new' });
    expect([status, body.errors]).toEqual([
      422,
      [{ location: ['body', 'cards'], code: 'required', message: expect.stringMatching(/PUT deletes .* Use PATCH/) }],
    ]);
    expect(await shown(id)).toMatchObject({ title: 'plan', version, cards: [{ title: 'a' }, { title: 'b' }, { title: 'c' }] });
    // The comments of a card stay when they are not named: nothing is at stake.
    const { cards: made } = await shown(id);
    await send('PATCH', `cards/${made[0]?.id}`, { comments: [{ text: 'kept' }] });
    const put = await send('PUT', `cards/${made[0]?.id}?expand=comments`, { title: 'a', board_id: id });
    expect([put.status, put.body.comments.map(({ text }: { text: string }) => text)]).toEqual([200, ['kept']]);
    expect((await send('PUT', `boards/${id}`, { title: 'empty', cards: [] })).status).toBe(200);
    expect((await shown(id)).cards).toEqual([]);
  });

  test('73: PATCH without the member leaves the children; with it alone the parent is touched', async () => {
    const { id, cards: made } = await make();
    expect((await send('PATCH', `boards/${id}`, { title: 'new' })).status).toBe(200);
    expect((await shown(id)).cards.map(({ title }) => title)).toEqual(['a', 'b', 'c']);
    forget();
    const patched = await send('PATCH', `boards/${id}`, { cards: made.slice(0, 2).map((card) => ({ id: card.id })) });
    expect([patched.status, patched.body.version]).toEqual([200, 3]);
    expect((await shown(id)).cards.map(({ title, version }) => [title, version])).toEqual([
      ['a', 1],
      ['b', 1],
    ]);
    expect(told.changes.map(({ operation, via }) => `${operation} ${via}`)).toEqual(['destroy nested']);
    expect((await send('PATCH', `boards/${id}`, { cards: [] })).status).toBe(200);
    expect((await shown(id)).cards).toEqual([]);
  });

  test("73: an id of another parent, of another owner's child, an unknown or malformed one is 422 and changes nothing", async () => {
    const [own, other, foreign] = [await make(), await make(), await make(['x'], 'bob')];
    for (const id of [other.cards[0]?.id, foreign.cards[0]?.id, '01890000-0000-7000-8000-000000000000', 'nope']) {
      const refused = await send('PUT', `boards/${own.id}`, { title: 'moved', cards: [{ title: 'new' }, { id, title: 'stolen' }] });
      expect([id, refused.status, refused.body.errors]).toMatchObject([
        id,
        422,
        [{ location: ['body', 'cards', 1, 'id'], code: 'unknown_reference' }],
      ]);
    }
    const created = await send('POST', 'boards', { title: 'x', cards: [{ id: own.cards[0]?.id, title: 'y' }] });
    expect([created.status, created.body.errors[0].code]).toEqual([422, 'unknown_reference']);
    expect((await shown(own.id)).cards.map(({ title }) => title)).toEqual(['a', 'b', 'c']);
    expect((await shown(own.id)).version).toBe(1);
    expect((await shown(other.id)).cards).toHaveLength(3);
  });

  test('faults of children have their places; too many, duplicates and unknown members are 422; nothing is written', async () => {
    const { id, cards: made } = await make();
    const faulty = await send('PUT', `boards/${id}`, { title: '', cards: [{ title: 'ok' }, { title: '' }, { title: 'x', nope: 1 }, {}] });
    expect([faulty.status, faulty.body.errors.map(({ location }: { location: unknown[] }) => location.join('.')).toSorted()]).toEqual([
      422,
      ['body.cards.1.title', 'body.cards.2.nope', 'body.cards.3.title', 'body.title'],
    ]);
    const twice = await send('PATCH', `boards/${id}`, { cards: [{ id: made[0]?.id }, { id: made[0]?.id }] });
    expect(twice.body.errors.map(({ code }: { code: string }) => code)).toEqual(['duplicate', 'duplicate']);
    for (const cards of [Array.from({ length: 11 }, () => ({ title: 'x' })), 'x', [7], null])
      expect((await send('PATCH', `boards/${id}`, { cards })).status).toBe(422);
    const parent = await send('PATCH', `boards/${id}`, { cards: [{ title: 'x', board_id: id }] });
    expect(parent.body.errors).toMatchObject([{ location: ['body', 'cards', 0, 'board_id'], code: 'unknown_field' }]);
    expect((await shown(id)).cards).toHaveLength(3);
  });

  test("45, 35: the child's hooks and field rules hold: what throws or may not be written undoes the whole request", async () => {
    const { id } = await make();
    expect((await send('PUT', `boards/${id}`, { title: 'lost', cards: [{ title: 'fine' }, { title: 'broken' }] })).status).toBe(500);
    const mine = await make(['s'], 'sue');
    const refused = await send('PATCH', `boards/${mine.id}`, { cards: [{ id: mine.cards[0]?.id, points: 5 }] }, 'sue');
    expect([refused.status, refused.body.code, refused.body.fields]).toEqual([403, 'permission_denied', ['points']]);
    expect((await shown(id)).cards.map(({ title }) => title)).toEqual(['a', 'b', 'c']);
    const stale = await send('PATCH', `boards/${id}`, { cards: [{ id: (await shown(id)).cards[0]?.id, title: 'x', version: 9 }] });
    expect([stale.status, stale.body.errors[0].location]).toEqual([412, ['body', 'cards', 0, 'version']]);
  });

  test('missing children are deleted only among those the relation shows, and never when there are more than it shows', async () => {
    const { id, cards: made } = await make();
    await database.db.execute('update cards set done = true where id = $1', [made[2]?.id]);
    expect((await send('PATCH', `boards/${id}`, { cards: [{ id: made[0]?.id }] })).status).toBe(200);
    expect((await shop.call('ann', 'GET', `cards/${made[2]?.id}`)).status).toBe(200);
    for (let index = 0; index < 12; index += 1) await send('POST', 'cards', { board_id: id, title: `more ${index}` });
    const refused = await send('PATCH', `boards/${id}`, { cards: [] });
    expect([refused.status, refused.body.code]).toEqual([409, 'too_many_related']);
    expect((await shop.call('ann', 'GET', `cards/${made[0]?.id}`)).status).toBe(200);
  });

  test('`missing: keep` leaves what is not named; children without hooks are one INSERT', async () => {
    const board = (await make(['a'])).cards[0] as Card;
    const texts: string[] = [];
    const made = await observeQueries(
      ({ sql }) => texts.push(sql),
      () => send('PATCH', `cards/${board.id}?expand=comments`, { comments: ['x', 'y', 'z'].map((text) => ({ text })) }),
    );
    expect([made.status, made.body.comments.length, made.body.version]).toEqual([200, 3, 2]);
    expect(texts.filter((text) => text.startsWith('insert into "comments"'))).toHaveLength(1);
    const again = await send('PATCH', `cards/${board.id}?expand=comments`, { comments: [{ id: made.body.comments[0].id, text: 'x2' }] });
    expect(again.body.comments.map(({ text }: { text: string }) => text).toSorted()).toEqual(['x2', 'y', 'z']);
  });

  test('two writers of one parent do not mix: each result is what one of them sent', async () => {
    const { id } = await make();
    const rounds = await Promise.all(
      Array.from({ length: 6 }, (_, round) =>
        send('PUT', `boards/${id}`, { title: 'x', cards: ['p', 'q'].map((name) => ({ title: `${name}${round}` })) }),
      ),
    );
    expect(rounds.map(({ status }) => status)).toEqual(rounds.map(() => 200));
    const titles = (await shown(id)).cards.map(({ title }) => title);
    expect(titles).toHaveLength(2);
    expect(new Set(titles.map((title) => title.slice(1))).size).toBe(1);
  });
});
