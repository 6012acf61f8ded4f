import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { Follower, type LiveApp, resetRights, rights, send, startLive, ticketModule } from '../../../test/crud/live.ts';
import type { Person } from '../../../test/crud/shop.ts';
import { coreTables } from '../../app/data/migration-modules.ts';
import type { Database } from '../../db/engine/db.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import { routeNews } from '../../http/serve/route-news.ts';
import { INPUT_LIMITS } from '../../options/input-limits.ts';
import { describeDatabases } from '../../testing/databases.ts';

const PATIENCE = { timeout: 10_000, interval: 20 };

describeDatabases('news of the route of a live list', (database) => {
  let db: Database;
  let live: LiveApp;
  const stops: AbortController[] = [];

  beforeAll(async () => {
    db = database.db;
    await migrate(db, [coreTables, ticketModule]);
    live = await startLive(db);
  });
  afterAll(async () => {
    await live.app.close();
  });
  beforeEach(async () => {
    resetRights();
    await db.query('delete from tickets');
  });
  afterEach(() => {
    for (const stop of stops.splice(0)) stop.abort();
  });

  const routeOf = (field: string): CompiledRoute => live.app.routes.find((route) => route.field === field) as CompiledRoute;

  interface Told {
    count: number;
    ended: Promise<unknown>;
    readonly stop: AbortController;
  }

  function follow(person: Person, field: 'list' | 'retrieve', { query = '', id }: { query?: string; id?: string } = {}): Told {
    const stop = new AbortController();
    stops.push(stop);
    const path = id === undefined ? '/v1/tickets' : `/v1/tickets/${id}`;
    const call = {
      url: `${path}${query}`,
      headers: { host: 'localhost', 'x-user': person },
      params: id === undefined ? {} : { id },
      requestId: 'news',
      remoteAddress: '127.0.0.1',
      parent: null,
    };
    const told: Told = { count: 0, ended: Promise.resolve(), stop };
    told.ended = (async () => {
      try {
        for await (const _ of routeNews(routeOf(field), call, stop.signal)) told.count += 1;
        return 'ended';
      } catch (error) {
        return error;
      }
    })();
    return told;
  }
  const reaches = (told: Told, count: number) => vi.waitFor(() => expect(told.count).toBe(count), PATIENCE);
  async function create(person: Person, values: object = {}): Promise<string> {
    const { status, body } = await send(live.url, person, 'POST', { title: 'a ticket', ...values });
    expect(status).toBe(201);
    return (body as { id: string }).id;
  }
  const change = (person: Person, id: string, values: object) => send(`${live.url}/${id}`, person, 'PATCH', values);

  /** Everything that was written so far has reached the streams of this process. */
  async function told(): Promise<void> {
    const witness = await new Follower('sue').connect(live.url);
    const id = await create('sue', { title: 'last' });
    await vi.waitFor(() => expect(witness.rows.has(id)).toBe(true), PATIENCE);
    await witness.disconnect();
  }

  test('come once at first, then for each batch of changes of rows that the caller sees, and for no other', async () => {
    const [all, open] = [follow('ann', 'list'), follow('ann', 'list', { query: '?status=open' })];
    await reaches(all, 1);
    await reaches(open, 1);
    const foreign = await create('bob');
    await change('bob', foreign, { title: 'changed' });
    await told();
    expect([all.count, open.count]).toEqual([1, 1]);
    await create('ann', { status: 'held' });
    await reaches(all, 2);
    await told();
    expect([all.count, open.count]).toEqual([2, 1]);
  });

  test('of a record come when it changes and when it is deleted, not for other records', async () => {
    const [id, other] = [await create('ann'), await create('ann')];
    const record = follow('ann', 'retrieve', { id });
    await reaches(record, 1);
    await change('ann', other, { title: 'other' });
    await told();
    expect(record.count).toBe(1);
    await change('ann', id, { title: 'changed' });
    await reaches(record, 2);
    await send(`${live.url}/${id}`, 'ann', 'DELETE');
    await reaches(record, 3);
  });

  test('of a record that the caller does not see are those of one that does not exist', async () => {
    const id = await create('bob');
    const record = follow('ann', 'retrieve', { id });
    await reaches(record, 1);
    await change('bob', id, { title: 'changed' });
    await told();
    expect(record.count).toBe(1);
  });

  test('end with the error of the list when the caller may not read it any more', async () => {
    const list = follow('ann', 'list');
    await reaches(list, 1);
    rights.shut.add('ann');
    expect(await list.ended).toMatchObject({ code: 'permission_denied' });
    expect(await follow('ann', 'list').ended).toMatchObject({ code: 'permission_denied' });
  });

  test('count as open streams of their caller, and end without an error when the signal aborts', async () => {
    const streams = Array.from({ length: INPUT_LIMITS.streamsPerCaller }, () => follow('ann', 'list'));
    const [first] = streams as [Told];
    for (const each of streams) await reaches(each, 1);
    expect(await follow('ann', 'list').ended).toMatchObject({ code: 'too_many_streams' });
    first.stop.abort();
    expect(await first.ended).toBe('ended');
    await reaches(follow('ann', 'list'), 1);
  });

  describe('are refused', () => {
    test('for a list that cannot be followed, with what the stream of the same address says', async () => {
      expect(await follow('ann', 'list', { query: '?status=none' }).ended).toMatchObject({ code: 'validation_error' });
    });
    test('for a route that does not tell when its response changes', async () => {
      const call = { url: '/v1/tickets', headers: {}, params: {}, requestId: '', remoteAddress: '', parent: null };
      const news = routeNews(routeOf('create'), call, new AbortController().signal);
      await expect(news.next()).rejects.toThrow('does not tell when its response changes');
    });
  });
});
