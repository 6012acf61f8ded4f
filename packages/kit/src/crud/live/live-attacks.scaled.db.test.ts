import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { scaled } from '../../../../../test/provision/scale.ts';
import { Follower, type LiveApp, resetRights, rights, send, startLive, ticketModule } from '../../../test/crud/live.ts';
import { people, type Person } from '../../../test/crud/shop.ts';
import { coreTables } from '../../app/data/migration-modules.ts';
import type { Database } from '../../db/index.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { INPUT_LIMITS } from '../../options/input-limits.ts';
import { describeDatabases } from '../../testing/databases.ts';

const PATIENCE = { timeout: 30_000, interval: 20 };

describeDatabases('live lists under attack', (database) => {
  let db: Database;
  let live: LiveApp;
  /** Of those who have more than one. */
  const acting = new Map<string, string>();
  const followers: Follower[] = [];
  async function follow(person: Person): Promise<Follower> {
    const follower = await new Follower(person).connect(live.url);
    followers.push(follower);
    return follower;
  }
  /** The streams of an earlier test may still be ending. */
  const admitted = (person: Person) =>
    vi.waitFor(async () => {
      const follower = await follow(person);
      expect(follower.status).toBe(200);
      return follower;
    }, PATIENCE);

  beforeAll(async () => {
    db = database.db;
    await migrate(db, [coreTables, ticketModule]);
    live = await startLive(db, {
      tenant: ({ user }) => (user === null ? null : (acting.get(user.username) ?? people[user.username as Person].tenant)),
    });
  });
  afterEach(async () => {
    await Promise.all(followers.splice(0).map((each) => each.disconnect()));
    acting.clear();
    resetRights();
    await db.query('delete from tickets');
    await db.query('delete from kit_changes');
  });
  afterAll(() => live.app.close());

  test('one caller opens thousands of streams: those beyond its share are refused, and everybody else is served', async () => {
    const { streamsPerCaller } = INPUT_LIMITS;
    const own = await Promise.all(Array.from({ length: streamsPerCaller }, () => follow('ann')));
    expect(own.map(({ status }) => status)).toEqual(own.map(() => 200));
    for (let left = scaled(200, 10_000); left > 0; left -= 50) {
      const refused = await Promise.all(
        Array.from({ length: 50 }, () => fetch(live.url, { headers: { 'x-user': 'ann', accept: 'text/event-stream' } })),
      );
      for (const response of refused) {
        expect(response.status).toBe(429);
        expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
        expect(await response.json()).toMatchObject({ code: 'too_many_streams', streams_max: streamsPerCaller });
      }
    }
    const other = await follow('bob');
    expect(other.status).toBe(200);
    await send(live.url, 'bob', 'POST', { title: 'of bob' });
    await send(live.url, 'ann', 'POST', { title: 'of ann' });
    await other.settled(live.url);
    expect(other.rows.size).toBe(1);
    for (const each of own) await each.settled(live.url);
    await own[0]?.disconnect();
    expect((await admitted('ann')).status).toBe(200);
  });

  test('a tenant that is switched while batches arrive: the stream stays that of its tenant, and its position holds for no other', async () => {
    const follower = await admitted('ann');
    const bulk = (title: string) =>
      send(`${live.url}/bulk`, 'ann', 'POST', { items: Array.from({ length: 20 }, (_, count) => ({ title: `${title} ${count}` })) });
    const [first] = await Promise.all([
      bulk('north'),
      (async () => {
        acting.set('ann', 'south');
        await bulk('south');
        acting.delete('ann');
        await bulk('north again');
      })(),
    ]);
    expect(first.status).toBe(201);
    await follower.settled(live.url);
    const orgOf = async (of: Follower) =>
      new Set(
        (await db.query<{ id: string; org: string }>('select id, org from tickets')).flatMap(({ id, org }) =>
          of.rows.has(id) ? [org] : [],
        ),
      );
    expect(await orgOf(follower)).toEqual(new Set(['north']));
    await follower.disconnect();
    acting.set('ann', 'south');
    const since = follower.log.length;
    await follower.connect(live.url);
    await follower.settled(live.url);
    expect(follower.log[since]).toMatchObject({ event: 'reset' });
    expect(await orgOf(follower)).toEqual(new Set(['south']));
  });

  test('what a caller lost while it was away is not named when it comes back', async () => {
    for (const level of [1, 4]) await send(live.url, 'ann', 'POST', { title: `level ${level}`, level });
    const follower = await admitted('ann');
    await follower.settled(live.url);
    const lost = [...follower.rows.values()].find(({ level }) => level === 4).id as string;
    await follower.disconnect();
    rights.level.set('ann', 2);
    await db.query(`update tickets set title = 'secret by now' where level = 4`);
    const since = follower.log.length;
    await follower.connect(live.url);
    await follower.settled(live.url);
    const told = JSON.stringify(follower.log.slice(since));
    expect(told).not.toContain(lost);
    expect(told).not.toContain('secret by now');
    expect(follower.log[since]).toMatchObject({ event: 'reset' });
  });
});
