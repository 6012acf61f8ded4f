import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { Follower, type LiveApp, resetRights, rights, send, startLive, ticketModule, ticketResource } from '../../../test/crud/live.ts';
import { people, type Person } from '../../../test/crud/shop.ts';
import { coreTables } from '../../app/data/migration-modules.ts';
import type { Database } from '../../db/engine/db.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { crudOf, touched } from '../index.ts';

const PATIENCE = { timeout: 10_000, interval: 20 };

describeDatabases('a live list', (database) => {
  let db: Database;
  let first: LiveApp;
  let second: LiveApp;
  const open: Follower[] = [];

  beforeAll(async () => {
    db = database.db;
    await migrate(db, [coreTables, ticketModule]);
    first = await startLive(db);
    second = await startLive(await database.open());
  });
  afterAll(async () => {
    await first.app.close();
    await second.app.close();
  });
  beforeEach(async () => {
    resetRights();
    await db.query('delete from tickets');
  });
  afterEach(async () => {
    for (const each of open.splice(0)) await each.disconnect();
  });

  /** A follower that has the list. */
  async function follow(person: Person, query = '', { url } = first): Promise<Follower> {
    const follower = await new Follower(person, query).connect(url);
    open.push(follower);
    await vi.waitFor(() => expect(follower.batches).toBe(1), PATIENCE);
    return follower;
  }
  async function create(person: Person, values: object = {}): Promise<string> {
    const { status, body } = await send(first.url, person, 'POST', { title: 'a ticket', ...values });
    expect([status, body]).toMatchObject([201, {}]);
    return (body as { id: string }).id;
  }
  const change = (person: Person, id: string, values: object, { url } = first) => send(`${url}/${id}`, person, 'PATCH', values);
  const events = ({ log }: Follower) => log.map(({ event, data }) => [event, (data as { key?: string }).key]);

  test('begins with the records of the list, in its order, and says ready', async () => {
    const [b, a] = [await create('ann', { title: 'b' }), await create('ann', { title: 'a' })];
    const follower = await follow('ann', '?ordering=title&fields=id,title');
    expect(follower.log).toEqual([
      { event: 'upsert', data: { key: a, item: { id: a, title: 'a' } } },
      { event: 'upsert', data: { key: b, item: { id: b, title: 'b' } } },
      { event: 'ready', data: {} },
    ]);
  });

  test('an ordinary GET of the same address is the list, and the response depends on Accept', async () => {
    const response = await fetch(first.url, { headers: { 'x-user': 'ann', accept: 'application/json' } });
    expect(response.headers.get('content-type')).toContain('application/json');
    expect(response.headers.get('vary')).toMatch(/accept/i);
    const head = await fetch(first.url, { method: 'HEAD', headers: { 'x-user': 'ann', accept: 'text/event-stream' } });
    expect([head.status, head.headers.get('content-type')]).toEqual([200, expect.stringContaining('application/json')]);
  });

  test('a record that is created, changed, moved out and back, and deleted reaches the streams of every process', async () => {
    const followers = [await follow('ann', '?status=open'), await follow('ann', '?status=open', second)];
    const id = await create('ann');
    for (const each of followers) await vi.waitFor(() => expect(each.rows.get(id)).toMatchObject({ title: 'a ticket' }), PATIENCE);
    await change('ann', id, { title: 'another' }, second);
    for (const each of followers) await vi.waitFor(() => expect(each.rows.get(id)).toMatchObject({ title: 'another' }), PATIENCE);
    await change('ann', id, { status: 'closed' });
    for (const each of followers) await vi.waitFor(() => expect(each.rows.has(id)).toBe(false), PATIENCE);
    await change('ann', id, { status: 'open' }, second);
    for (const each of followers) await vi.waitFor(() => expect(each.rows.has(id)).toBe(true), PATIENCE);
    await send(`${first.url}/${id}`, 'ann', 'DELETE');
    for (const each of followers) await vi.waitFor(() => expect(each.rows.has(id)).toBe(false), PATIENCE);
    for (const each of followers)
      expect(events(each)).toEqual([
        ['ready', undefined],
        ...(['upsert', 'upsert', 'remove', 'upsert', 'remove'] as const).flatMap((event) => [
          [event, id],
          ['ready', undefined],
        ]),
      ]);
  });

  test('changes of records that the caller does not see, and never saw, send nothing', async () => {
    const [own, staff] = [await follow('ann'), await follow('sue')];
    const hidden = await create('bob');
    await vi.waitFor(() => expect(staff.rows.has(hidden)).toBe(true), PATIENCE);
    await change('bob', hidden, { title: 'still hidden' });
    await send(`${first.url}/${hidden}`, 'bob', 'DELETE');
    await vi.waitFor(() => expect(staff.rows.has(hidden)).toBe(false), PATIENCE);
    expect(own.log).toEqual([{ event: 'ready', data: {} }]);
  });

  test('a stream without its ids is the same, whatever happens to records that its caller does not see', async () => {
    const told = async (isNoisy: boolean): Promise<unknown[]> => {
      await db.query('delete from tickets');
      const follower = await follow('ann', '?fields=title,status');
      const over = new AbortController();
      const disturb = async (): Promise<void> => {
        while (!over.signal.aborted) {
          const id = await create('bob', { title: 'of bob' });
          await change('bob', id, { title: 'changed', status: 'held' }, second);
          await send(`${first.url}/${id}`, 'bob', 'DELETE');
        }
      };
      const noise = isNoisy ? disturb() : Promise.resolve();
      const nextBatch = async (write: () => Promise<unknown>): Promise<void> => {
        const { batches } = follower;
        await write();
        await vi.waitFor(() => expect(follower.batches).toBe(batches + 1), PATIENCE);
      };
      let id = '';
      await nextBatch(async () => (id = await create('ann', { title: 'one' })));
      await nextBatch(() => change('ann', id, { title: 'two' }));
      await nextBatch(() => change('ann', id, { status: 'held' }, second));
      await nextBatch(() => send(`${first.url}/${id}`, 'ann', 'DELETE'));
      over.abort();
      await noise;
      // The key of each run is another one.
      return follower.log.map(({ event, data }) => [event, JSON.stringify(data).replaceAll(id, 'id')]);
    };
    expect(await told(true)).toEqual(await told(false));
  });

  test('a filter by a UUID in capitals follows the records that it lists', async () => {
    const id = await create('ann');
    const follower = await follow('sue', `?owner_id=${people.ann.id.toUpperCase()}`);
    expect([...follower.rows.keys()]).toEqual([id]);
    await change('ann', id, { title: 'changed' });
    await vi.waitFor(() => expect(follower.rows.get(id)).toMatchObject({ title: 'changed' }), PATIENCE);
    const other = await create('ann');
    await vi.waitFor(() => expect(follower.rows.has(other)).toBe(true), PATIENCE);
  });

  test('a change of columns that the list does not show its caller is not told', async () => {
    rights.margin.add('sue');
    const id = await create('ann');
    const [follower, whole] = [await follow('ann', '?fields=id,title'), await follow('sue', '?fields=id,title,margin')];
    const told = follower.log.length;
    for (const values of [{ margin: 7 }, { level: 2 }, { margin: 8, secret: 'unheard of' }])
      expect((await change('sue', id, values, second)).status).toBe(200);
    await vi.waitFor(() => expect(whole.rows.get(id)).toMatchObject({ margin: 8 }), PATIENCE);
    await change('sue', id, { title: 'told' });
    await vi.waitFor(() => expect(follower.rows.get(id)).toEqual({ id, title: 'told' }), PATIENCE);
    expect(events(follower).slice(told)).toEqual([
      ['upsert', id],
      ['ready', undefined],
    ]);
  });

  test('bulk operations arrive as one batch', async () => {
    const follower = await follow('ann');
    const { body } = await send(`${first.url}/bulk`, 'ann', 'POST', { items: [{ title: 'x' }, { title: 'y' }, { title: 'z' }] });
    await vi.waitFor(() => expect(follower.rows.size).toBe(3), PATIENCE);
    expect(follower.batches).toBe(2);
    await send(`${first.url}/bulk-delete`, 'ann', 'POST', { ids: (body.items as { id: string }[]).map(({ id }) => id) });
    await vi.waitFor(() => expect(follower.rows.size).toBe(0), PATIENCE);
  });

  test('a write that is rolled back sends nothing', async () => {
    const follower = await follow('ann');
    const failed = await send(`${first.url}/bulk`, 'ann', 'POST', { items: [{ title: 'x' }, { title: 'y'.repeat(200) }] });
    expect(failed.status).toBe(422);
    await create('ann', { title: 'after' });
    await vi.waitFor(() => expect(follower.rows.size).toBe(1), PATIENCE);
    expect(follower.log.filter(({ event }) => event === 'upsert')).toHaveLength(1);
  });

  test('a record that SQL wrote arrives when the program calls touched()', async () => {
    const id = await create('ann');
    const [follower, other] = [await follow('ann', '?status=open'), await follow('bob', '?status=open')];
    const write = (status: string) =>
      db.transaction(async (tx) => {
        await tx.query('update tickets set status = $1 where id = $2', [status, id]);
        await touched(tx, ticketResource, [id]);
      });
    await write('closed');
    await vi.waitFor(() => expect(follower.rows.has(id)).toBe(false), PATIENCE);
    await write('open');
    await vi.waitFor(() => expect(follower.rows.has(id)).toBe(true), PATIENCE);
    expect(other.log).toEqual([{ event: 'ready', data: {} }]);
  });

  test('a change whose number an erasure made free is not missed', async () => {
    const [kept, erased] = [await create('ann', { title: 'kept' }), await create('ann', { title: 'erased' })];
    const followers = [await follow('ann'), await follow('ann', '', second)];
    await db.transaction(async (tx) => {
      await tx.query('delete from tickets where id = $1', [erased]);
      await tx.query('delete from kit_changes where resource = $1 and key = $2', ['tickets', JSON.stringify(erased)]);
      await tx.query(`update tickets set title = 'changed' where id = $1`, [kept]);
      await touched(tx, ticketResource, [kept]);
    });
    for (const each of followers) await vi.waitFor(() => expect(each.rows.get(kept)).toMatchObject({ title: 'changed' }), PATIENCE);
  });

  test('a program follows the list of its caller, until its signal aborts', async () => {
    const [mine] = [await create('ann', { title: 'mine' }), await create('bob', { title: 'of bob' })];
    const user = { id: people.ann.id, username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false };
    const stop = new AbortController();
    const seen: string[] = [];
    const following = (async () => {
      const changes = crudOf(first.app, ticketResource).as({ user, tenant: 'north' }).live({ status: 'open' }, { signal: stop.signal });
      for await (const change of changes) seen.push('key' in change ? `${change.event} ${String(change.key)}` : change.event);
    })();
    await vi.waitFor(() => expect(seen).toEqual([`upsert ${mine}`, 'ready']), PATIENCE);
    await create('bob', { title: 'of bob, too' });
    await change('ann', mine, { status: 'closed' });
    await vi.waitFor(() => expect(seen.slice(2)).toEqual([`remove ${mine}`, 'ready']), PATIENCE);
    stop.abort();
    await following;
  });

  describe('rights that change while the stream is open', () => {
    test('a rule that shows fewer rows corrects the list within a second, on every process', async () => {
      const [low, high] = [await create('ann', { level: 1 }), await create('ann', { level: 4 })];
      const followers = [await follow('ann'), await follow('ann', '', second)];
      rights.level.set('ann', 2);
      const since = Date.now();
      for (const each of followers) await vi.waitFor(() => expect([...each.rows.keys()]).toEqual([low]), PATIENCE);
      expect(Date.now() - since).toBeLessThan(1_500);
      rights.level.delete('ann');
      for (const each of followers) await vi.waitFor(() => expect(new Set(each.rows.keys())).toEqual(new Set([low, high])), PATIENCE);
    });

    test('a field that is hidden disappears from every record', async () => {
      rights.margin.add('ann');
      const id = await create('ann');
      const follower = await follow('ann');
      expect(follower.rows.get(id)).toHaveProperty('margin');
      rights.margin.delete('ann');
      await vi.waitFor(() => expect(follower.rows.get(id)).not.toHaveProperty('margin'), PATIENCE);
    });

    test('a caller whom the permission of the list does not admit any more loses the stream', async () => {
      const follower = await follow('ann');
      rights.shut.add('ann');
      expect(await follower.whenEnded()).toMatchObject({ event: 'error', data: { code: 'permission_denied' } });
    });

    test('a record is never sent under rights that have ended, also before they were looked up', async () => {
      const id = await create('ann', { level: 4 });
      for (let count = 0; count < 10; count += 1) {
        rights.level.delete('ann');
        const follower = await follow('ann');
        rights.level.set('ann', 2);
        const before = follower.log.length;
        expect((await change('sue', id, { title: `hidden ${count}` })).status).toBe(200);
        await vi.waitFor(() => expect(follower.rows.size).toBe(0), PATIENCE);
        expect(JSON.stringify(follower.log.slice(before))).not.toContain('hidden');
        await follower.disconnect();
      }
    });
  });

  describe('a client that comes back with its position', () => {
    test('gets what it missed, and nothing twice, from another process', async () => {
      const [kept, gone] = [await create('ann', { title: 'kept' }), await create('ann', { title: 'gone' })];
      const follower = await follow('ann');
      await follower.disconnect();
      const [made, passing] = [await create('ann', { title: 'made' }), await create('ann', { title: 'passing' })];
      await send(`${first.url}/${gone}`, 'ann', 'DELETE');
      await send(`${first.url}/${passing}`, 'ann', 'DELETE');
      await change('ann', kept, { title: 'changed' });
      await change('ann', kept, { title: 'changed again' });
      const before = follower.log.length;
      await follower.connect(second.url);
      await follower.settled(first.url);
      const sent = follower.log.slice(before).filter(({ event }) => event !== 'ready');
      expect(sent.map(({ event, data }) => `${event} ${(data as { key: string }).key}`).toSorted()).toEqual(
        [`upsert ${made}`, `upsert ${kept}`, `remove ${gone}`].toSorted(),
      );
    });

    test('begins again when its rights, its query or its caller are others', async () => {
      await create('ann', { level: 4 });
      const follower = await follow('ann');
      await follower.disconnect();
      const id = follower.lastEventId;
      rights.level.set('ann', 2);
      await follower.connect(first.url);
      await vi.waitFor(() => expect(follower.rows.size).toBe(0), PATIENCE);
      expect(follower.log.at(-2)).toEqual({ event: 'reset', data: {} });
      rights.level.delete('ann');
      for (const [person, query] of [
        ['ann', '?status=open'],
        ['bob', ''],
        ['ann', '?fields=title'],
      ] as const) {
        const other = new Follower(person, query);
        other.lastEventId = id;
        open.push(await other.connect(first.url));
        await vi.waitFor(() => expect(other.log[0]).toEqual({ event: 'reset', data: {} }), PATIENCE);
      }
    });

    test('misses nothing when the log was empty at its position', async () => {
      await db.query('delete from kit_changes');
      const follower = await follow('ann');
      await follower.disconnect();
      const id = await create('ann');
      await follower.connect(second.url);
      await vi.waitFor(() => expect([...follower.rows.keys()]).toEqual([id]), PATIENCE);
      // An empty log of SQLite does not say which database it is of.
      const resets = follower.log.filter(({ event }) => event === 'reset');
      expect(resets).toHaveLength(db.dialect === 'sqlite' ? 1 : 0);
      expect(follower.log.filter(({ event }) => event === 'upsert')).toHaveLength(1);
    });

    test('begins again when the position was made up, or belongs to another database', async () => {
      const follower = await follow('ann');
      await follower.disconnect();
      for (const id of ['nonsense', `${follower.lastEventId.slice(0, -2)}xx`]) {
        const other = new Follower('ann');
        other.lastEventId = id;
        open.push(await other.connect(first.url));
        await vi.waitFor(() => expect(other.log[0]).toEqual({ event: 'reset', data: {} }), PATIENCE);
      }
    });
  });

  test('a transaction that stays open keeps no other change back, and its own arrives when it commits', async () => {
    if (db.dialect === 'sqlite') return;
    const follower = await follow('sue');
    const commit = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const id = await create('ann', { title: 'before' });
    await vi.waitFor(() => expect(follower.rows.has(id)).toBe(true), PATIENCE);
    const held = db.transaction(async (tx) => {
      await tx.transaction(async (savepoint) => {
        await savepoint.query(`update tickets set title = 'late' where id = $1`, [id]);
        await touched(savepoint, ticketResource, [id]);
      });
      begun.resolve();
      await commit.promise;
    });
    await begun.promise;
    const others: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      others.push(await create('ann', { title: `other ${count}` }));
      await vi.waitFor(() => expect(follower.rows.has(others.at(-1) as string)).toBe(true), PATIENCE);
    }
    expect(follower.rows.get(id)).toMatchObject({ title: 'before' });
    commit.resolve();
    await held;
    await vi.waitFor(() => expect(follower.rows.get(id)).toMatchObject({ title: 'late' }), PATIENCE);
  });

  test('a list that reads other records, or has pages, is rejected', async () => {
    for (const [query, code] of [
      ['?limit=5', 'validation_error'],
      ['?cursor=x', 'validation_error'],
      ['?nonsense=1', 'validation_error'],
    ]) {
      const follower = await new Follower('ann', query).connect(first.url);
      expect([follower.status, follower.ended?.data.code]).toEqual([422, code]);
    }
  });

  test('a server that stops ends its streams, and the client continues at another one without a gap', async () => {
    const third = await startLive(await database.open());
    const follower = await follow('ann', '', third);
    await third.app.close();
    expect(await follower.whenEnded()).toMatchObject({ event: 'error', data: { code: 'unavailable' } });
    const id = await create('ann');
    await follower.connect(second.url);
    await vi.waitFor(() => expect(follower.rows.has(id)).toBe(true), PATIENCE);
    expect(follower.log.some(({ event }) => event === 'reset')).toBe(false);
  });
});
