import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { people, startShop, type ShopApp } from '../../test/crud/shop.ts';
import { createApp } from '../app/assemble/create-app.ts';
import type { StartUpError } from '../app/check/start-up-error.ts';
import { createTable, insert, migration, model, remove, t, update, type Db } from '../db/index.ts';
import { jsonSchema } from '../http/declare/json-schema.ts';
import type { HandlerContext } from '../http/index.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, one, resource } from './index.ts';

// What controllers of modules need: settings of a class that the resource asks for, tenants that the class decides, bodies that are not columns, lists
// below a record, and cursors that clients have from before.

const feeds = model('feeds', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  room: t.text(20).dbDefault(''),
  topics: t.array(t.text()),
  token: t.text(80).sensitive(),
});
const posts = model('feed_posts', { id: t.uuidv7().pk(), feed_id: t.ref(() => feeds, { onDelete: 'cascade' }), title: t.text(40) });

interface FeedBody {
  readonly topics?: readonly string[];
  readonly header?: { readonly name: string };
}
const topics = { type: 'array', items: { type: 'string' }, minItems: 1 };
const header = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'], additionalProperties: false };
const bodyOf = (required: readonly string[]) =>
  jsonSchema<FeedBody>(
    { type: 'object', properties: { topics, header }, required, additionalProperties: false },
    { name: `Feed${required.length}` },
  );

function knownTopics(controller: object | null): readonly string[] | null {
  const { topics: known = null }: { readonly topics?: readonly string[] | null } = controller ?? {};
  return known;
}

async function writeToken(tx: Db, id: string, body: FeedBody): Promise<void> {
  if (body.header !== undefined) await update(tx, feeds, id, { token: `sealed ${body.header.name.length}` });
}

const feedResource = resource(feeds, {
  owner: 'owner_id',
  rows: ({ tenant }) => ({ room: tenant ?? '' }),
  writes: 'verbs',
  bodies: { create: bodyOf(['topics']), update: bodyOf([]) },
  once: { token: { on: ['create'], nullable: true } },
  validate({ input, caller }) {
    const known = knownTopics(caller.controller);
    const given = (input as FeedBody).topics ?? [];
    return known === null
      ? []
      : given.flatMap((topic, index) =>
          known.includes(topic) ? [] : [{ location: ['body', 'topics', index], code: 'unknown_topic', message: 'There is no such topic.' }],
        );
  },
  hooks: {
    async create({ tx, user, tenant, input, once }) {
      const body = input as FeedBody;
      const row = await insert(tx, feeds, { owner_id: user!.id, room: tenant ?? '', topics: [...(body.topics ?? [])], token: '' });
      await writeToken(tx, row.id, body);
      if (body.header !== undefined) once('token', body.header.name);
      return row;
    },
    async update({ tx, before, input, caller }) {
      const body = input as FeedBody;
      const first = knownTopics(caller.controller)?.[0];
      if (body.topics !== undefined)
        await update(tx, feeds, before.id, { topics: [...body.topics, ...(first === undefined ? [] : [first])] });
      await writeToken(tx, before.id, body);
      return before;
    },
    destroy: async ({ tx, before }) => void (await remove(tx, feeds, before.id)),
  },
});
const postResource = resource(posts, {
  rows: () => ({ feed: { is: {} } }),
  relations: { feed: one(() => feeds, 'feed_id') },
});

class FeedPosts extends CrudController(postResource, {
  permission: isAuthenticated,
  parent: { relation: 'feed' },
  page: { default: 2, count: 'exact', keyCursors: true },
}) {}

class Feeds extends CrudController(feedResource, { permission: isAuthenticated }) {
  static readonly topics: readonly string[] | null = null;
  readonly #posts = this.below('/:feed_id/posts', new FeedPosts());
  posts = this.#posts['list'];
  post = this.#posts['retrieve'];
  addPost = this.#posts['create'];
  override tenantOf(_context: HandlerContext): string | null {
    return null;
  }
}
class RoomFeeds extends Feeds {
  static override readonly topics: readonly string[] = ['news', 'sport'];
  override tenantOf({ request }: HandlerContext): string | null {
    const room = request.headers['x-room'];
    return typeof room === 'string' ? room : null;
  }
}

describeDatabases('controllers of modules', (database) => {
  let app: ShopApp;
  beforeAll(async () => {
    app = await startShop({
      database: database.db,
      tenant: () => 'north',
      mount: { '/v1': { '/feeds': Feeds, '/room-feeds': RoomFeeds } },
      modules: [
        {
          name: 'feeds',
          models: [feeds, posts],
          migrations: [
            migration('0001_initial', [
              createTable('feeds', feeds.columns),
              createTable('feed_posts', { ...posts.columns, feed_id: t.ref('feeds', { onDelete: 'cascade' }) }),
            ]),
          ],
        },
      ],
    });
  });
  afterAll(() => app.close());
  const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    app.call('ann', method, path, body, headers);
  const tokenOf = async (id: string) =>
    (await database.db.query<{ token: string }>('select token from feeds where id = $1', [id]))[0]?.token;

  test('the tenant that a class decides takes the place of the app’s, in reading and in writing', async () => {
    const red = { 'x-room': 'red' };
    const own = (await call('POST', 'feeds', { topics: ['any'] })).body;
    const made = await call('POST', 'room-feeds', { topics: ['news'] }, red);
    expect([own.room, made.status, made.body.room]).toEqual(['', 201, 'red']);
    const ids = async (path: string, headers = {}) =>
      (await call('GET', path, undefined, headers)).body.items.map(({ id }: { id: string }) => id);
    expect([await ids('feeds'), await ids('room-feeds', red), await ids('room-feeds', { 'x-room': 'blue' })]).toEqual([
      [own.id],
      [made.body.id],
      [],
    ]);
    for (const method of ['GET', 'PATCH', 'DELETE'])
      expect((await call(method, `room-feeds/${made.body.id}`, method === 'PATCH' ? {} : undefined, { 'x-room': 'blue' })).status).toBe(
        404,
      );
    // A cursor belongs to the tenant that it was made for.
    await call('POST', 'room-feeds', { topics: ['sport'] }, red);
    const { next } = (await call('GET', 'room-feeds?limit=1', undefined, red)).body;
    expect((await call('GET', `room-feeds${next}`, undefined, red)).status).toBe(200);
    expect((await call('GET', `room-feeds${next}`, undefined, { 'x-room': 'blue' })).body.code).toBe('invalid_cursor');
  });

  test('rules and hooks read the statics of the class', async () => {
    const red = { 'x-room': 'red' };
    const faulty = await call('POST', 'room-feeds', { topics: ['news', 'cats'] }, red);
    expect([faulty.status, faulty.body.errors]).toMatchObject([422, [{ location: ['body', 'topics', 1], code: 'unknown_topic' }]]);
    const { id } = (await call('POST', 'feeds', { topics: ['cats'] })).body;
    expect((await call('PATCH', `feeds/${id}`, { topics: ['dogs'] })).body.topics).toEqual(['dogs']);
    const other = (await call('POST', 'room-feeds', { topics: ['sport'] }, red)).body;
    expect((await call('PATCH', `room-feeds/${other.id}`, { topics: ['sport'] }, red)).body.topics).toEqual(['sport', 'news']);
  });

  test('bodies that are not columns are checked by their schema, together with the rules; PUT keeps what is left out', async () => {
    const red = { 'x-room': 'red' };
    const faulty = await call('POST', 'room-feeds', { topics: ['cats'], header: { name: 5 }, room: 'blue' }, red);
    expect([faulty.status, faulty.body.errors.map(({ location }: { location: unknown[] }) => location.join('.')).toSorted()]).toEqual([
      422,
      ['body.header.name', 'body.room', 'body.topics.0'],
    ]);
    const { id } = (await call('POST', 'feeds', { topics: ['cats'], header: { name: 'four' } })).body;
    expect(await tokenOf(id)).toBe('sealed 4');
    expect((await call('PUT', `feeds/${id}`, { header: { name: 'seven77' } })).body).toMatchObject({ topics: ['cats'] });
    expect(await tokenOf(id)).toBe('sealed 7');
    expect((await call('PATCH', `feeds/${id}`, { owner_id: people.bob.id })).status).toBe(422);
    const { paths } = (await app.inject({ url: '/openapi.json' })).json();
    expect(paths['/v1/feeds'].post.requestBody.content['application/json'].schema).toEqual({ $ref: '#/components/schemas/Feed1' });
  });

  test('a value that may be null is shown once all the same, under the name of a column that is never shown', async () => {
    const given = await call('POST', 'feeds', { topics: ['a'], header: { name: 'raw' } });
    const none = await call('POST', 'feeds', { topics: ['a'] });
    expect([given.body.token, none.body.token, none.headers['cache-control']]).toEqual(['raw', null, 'no-store']);
    expect((await call('GET', `feeds/${given.body.id}`)).body.token).toBeUndefined();
  });

  test('lists below a record: its rows only, and the 404 of the record where the caller does not see it', async () => {
    const { id } = (await call('POST', 'feeds', { topics: ['a'] })).body;
    const other = (await call('POST', 'feeds', { topics: ['a'] })).body;
    const ids: string[] = [];
    for (const title of ['one', 'two', 'three']) {
      const made = await call('POST', `feeds/${id}/posts`, { title });
      expect([made.status, made.body.feed_id]).toEqual([201, id]);
      ids.unshift(made.body.id);
    }
    const first = (await call('GET', `feeds/${id}/posts`)).body;
    expect(first).toMatchObject({ items: [{ id: ids[0] }, { id: ids[1] }], count: 3 });
    expect((await call('GET', `feeds/${id}/posts/${ids[2]}`)).body.title).toBe('one');
    expect((await call('GET', `feeds/${other.id}/posts/${ids[2]}`)).status).toBe(404);
    for (const [method, path, body] of [
      ['GET', ''],
      ['POST', '', { title: 'mine' }],
      ['GET', `/${ids[0]}`],
    ] as const)
      expect((await app.call('bob', method, `feeds/${id}/posts${path}`, body)).status).toBe(404);
    // The same posts below the mount of other rooms are another list.
    expect((await call('GET', `room-feeds/${id}/posts`, undefined, { 'x-room': 'red' })).status).toBe(404);
  });

  test('a key is a cursor where `keyCursors` is set: the rows behind it, counted as on the first page', async () => {
    const { id } = (await call('POST', 'feeds', { topics: ['a'] })).body;
    const ids: string[] = [];
    for (const title of ['one', 'two', 'three']) ids.unshift((await call('POST', `feeds/${id}/posts`, { title })).body.id);
    const { next } = (await call('GET', `feeds/${id}/posts`)).body;
    const list = async (query: string) => (await call('GET', `feeds/${id}/posts${query}`)).body;
    for (const query of [next, `?cursor=${encodeURIComponent(next)}`, `?cursor=${ids[1]}`, `?cursor=${ids[1]!.toUpperCase()}`])
      expect(await list(query)).toMatchObject({ items: [{ id: ids[2] }], count: 3, next: null });
    expect((await list(`?cursor=${ids[1]}&limit=1`)).previous).toEqual(expect.stringMatching(/^\?cursor=/));
    expect((await call('GET', `feeds?cursor=${id}`)).body.code).toBe('invalid_cursor');
    expect((await list('?cursor=x')).code).toBe('invalid_cursor');
  });
});

describe('at startup', () => {
  const faultsOf = (given: object, options: object = {}, without: readonly string[] = []): readonly string[] => {
    const declared = Object.entries({ ...feedResource.options, ...given }).filter(([name]) => !without.includes(name));
    class Wrong extends CrudController(resource(feeds, Object.fromEntries(declared) as never), {
      permission: isAuthenticated,
      ...options,
    }) {}
    try {
      createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: { '/v1': { '/feeds': Wrong } } });
      return [];
    } catch (error) {
      return (error as StartUpError).faults.map(({ id, message }) => `${id} ${message}`);
    }
  };

  test('bodies are for resources that write by verbs, one record at a time', () => {
    expect(faultsOf({})).toEqual([]);
    expect(faultsOf({}, {}, ['writes'])).toContainEqual(
      expect.stringMatching(/^E013 Wrong: resource\(feeds\) has bodies, but does not write by verbs/),
    );
    expect(faultsOf({ once: {} }, { bulk: { create: true } })).toContainEqual(
      expect.stringMatching(/^E013 Wrong: offers bulkCreate, but resource\(feeds\) has bodies of its own/),
    );
  });

  test('a controller below the records of another uses the database of that one', () => {
    class Elsewhere extends CrudController(feedResource, { permission: isAuthenticated, using: 'other' }) {
      readonly #posts = this.below('/:feed_id/posts', new FeedPosts());
      posts = this.#posts['list'];
    }
    const app = () =>
      createApp({
        database: 'sqlite::memory:',
        log: { level: 'silent' },

        mount: { '/v1': { '/feeds': Elsewhere } },
      });
    expect(app).toThrow(/Elsewhere: uses the database "other", and FeedPosts below its records "default"/);
  });

  test('a value that is shown once cannot have the name of a column that is shown', () => {
    expect(faultsOf({ once: { topics: { on: ['create'] } } })).toContainEqual(expect.stringMatching(/^E018 .*once.topics takes the name/));
  });
});
