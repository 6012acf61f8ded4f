import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { Follower, type LiveApp, resetRights, send, startLive, ticketModule, ticketResource } from '../../../test/crud/live.ts';
import { people, type Person } from '../../../test/crud/shop.ts';
import { coreTables } from '../../app/data/migration-modules.ts';
import type { Database, QueryEvent } from '../../db/index.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { crudOf } from '../index.ts';
import { isContinued, isKnown, positionOf } from './log-position.ts';

const PATIENCE = { timeout: 30_000, interval: 20 };
const HOUR = 3_600_000;

describeDatabases('positions of live lists, and what they cost', (database) => {
  let db: Database;
  let live: LiveApp;
  let nowMs = Date.now();
  const statements: string[] = [];
  const followers: Follower[] = [];
  async function follow(person: Person, query = ''): Promise<Follower> {
    const follower = await new Follower(person, query).connect(live.url);
    followers.push(follower);
    return follower;
  }
  const create = async (person: Person, values: object): Promise<string> =>
    ((await send(live.url, person, 'POST', values)).body as { id: string }).id;
  const ann = { id: people.ann.id, username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false };

  beforeAll(async () => {
    db = await database.open({ onQuery: ({ sql }: QueryEvent) => void statements.push(sql) });
    await migrate(db, [coreTables, ticketModule]);
    live = await startLive(db, { clock: { now: () => new Date(nowMs) } });
  });
  afterEach(async () => {
    await Promise.all(followers.splice(0).map((each) => each.disconnect()));
    resetRights();
    await db.query('delete from tickets');
    await db.query('delete from kit_changes');
  });
  afterAll(() => live.app.close());

  test('a position holds for 24 hours, and then the list begins again', async () => {
    await create('ann', { title: 'old' });
    const follower = await follow('ann');
    await follower.settled(live.url);
    for (const [hours, resets] of [
      [23, 0],
      [48, 1],
    ] as const) {
      await follower.disconnect();
      nowMs += hours * HOUR;
      const since = follower.log.length;
      await create('ann', { title: `after ${hours}` });
      await follower.connect(live.url);
      await follower.settled(live.url);
      expect(follower.log.slice(since).filter(({ event }) => event === 'reset')).toHaveLength(resets);
    }
  });

  test('a position is of one database: a copy of it, or one that began again, is another', async () => {
    await create('ann', { title: 'one' });
    const position = await db.transaction((tx) => positionOf(tx));
    expect(await isKnown(db, position)).toBe(true);
    expect(await db.transaction((tx) => isContinued(tx, position, position))).toBe(true);
    for (const other of [
      { ...position, origin: `${position.origin}1` },
      { ...position, text: db.dialect === 'sqlite' ? '999999' : '999999998:999999999:' },
    ])
      expect(await isKnown(db, other)).toBe(false);
  });

  test('what a savepoint writes arrives with its transaction, also when others went on meanwhile; nothing of one that is rolled back', async () => {
    const follower = await follow('ann');
    const [written, committing] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const writer = crudOf(live.app, ticketResource).as({ user: ann, tenant: 'north' });
    const transaction = db.transaction(async (tx) => {
      await tx.transaction(async (inner) => void (await writer.write(inner).create({ title: 'of a savepoint' })));
      await tx
        .transaction(async (inner) => {
          await writer.write(inner).create({ title: 'never' });
          throw new Error('undone');
        })
        .catch(() => undefined);
      written.resolve();
      if (db.dialect === 'postgres') await committing.promise;
    });
    await written.promise;
    await create('ann', { title: 'meanwhile' });
    await follower.settled(live.url);
    committing.resolve();
    await transaction;
    await follower.settled(live.url);
    expect([...follower.rows.values()].map(({ title }) => title as string).toSorted()).toEqual(['meanwhile', 'of a savepoint']);
  });

  test('a row is read once per change for all streams that see the same, however many they are', async () => {
    const id = await create('ann', { title: 'one' });
    const all = await Promise.all(Array.from({ length: 30 }, () => follow('ann')));
    for (const each of all) await vi.waitFor(() => expect(each.rows.size).toBe(1), PATIENCE);
    const from = statements.length;
    await send(`${live.url}/${id}`, 'ann', 'PATCH', { title: 'two' });
    for (const each of all) await vi.waitFor(() => expect(each.rows.get(id).title).toBe('two'), PATIENCE);
    const reads = statements.slice(from).filter((sql) => /^select\b.*\bfrom "tickets"/s.test(sql) && !/for (no key )?update/.test(sql));
    // The row as it is, and as the lists have it; the write reads it, too.
    expect(reads.length).toBeLessThanOrEqual(db.dialect === 'sqlite' ? 3 : 2);
  });

  test('a QUERY is followed as a GET is', async () => {
    const [open, closed] = [await create('ann', { title: 'a', status: 'open' }), await create('ann', { title: 'b', status: 'closed' })];
    const stop = new AbortController();
    const response = await fetch(live.url, {
      method: 'QUERY',
      headers: { 'x-user': 'ann', accept: 'text/event-stream', 'content-type': 'application/json' },
      body: JSON.stringify({ where: { status: 'open' } }),
      signal: stop.signal,
    });
    expect(response.status).toBe(200);
    let text = '';
    const reading = (async () => {
      for await (const chunk of response.body as AsyncIterable<Uint8Array>) text += Buffer.from(chunk).toString();
    })().catch(() => undefined);
    await vi.waitFor(() => expect(text).toContain('event: ready'), PATIENCE);
    expect(text).toContain(open);
    expect(text).not.toContain(closed);
    await send(`${live.url}/${closed}`, 'ann', 'PATCH', { status: 'open' });
    await vi.waitFor(() => expect(text).toContain(closed), PATIENCE);
    stop.abort();
    await reading;
  });
});
