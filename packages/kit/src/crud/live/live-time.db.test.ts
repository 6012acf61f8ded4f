import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { Follower, type LiveApp, send, startLive } from '../../../test/crud/live.ts';
import { people } from '../../../test/crud/shop.ts';
import { coreTables } from '../../app/data/migration-modules.ts';
import type { Module } from '../../app/declare/module.ts';
import { createTable, type Database, migration, model, t, versioned } from '../../db/index.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { CrudController, crudOf, derived, resource } from '../index.ts';

const MINUTE = 60_000;
const SEED = Date.now() % 100_000;

const passes = model('passes', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  title: t.text(80),
  from_at: t.timestamp(),
  until_at: t.timestamp().nullable(),
  ...versioned(),
});

/** Everybody sees passes of their own that have not ended; and which of them have begun. */
const passResource = resource(passes, {
  owner: 'owner_id',
  rows: ({ now }) => ({ or: [{ until_at: null }, { until_at: { gt: now } }] }),
  computed: {
    state: derived(['begun', 'soon', 'later'], {
      begun: ({ now }) => ({ from_at: { lte: now } }),
      soon: ({ now }) => ({ from_at: { lt: new Date(now.getTime() + 10 * MINUTE) } }),
    }),
  },
  version: 'version',
});

class PassController extends CrudController(passResource, {
  permission: isAuthenticated,
  filters: { state: ['eq', 'ne'], title: ['eq'] },
  page: { max: 1000 },
  live: true,
}) {}

const passModule: Module = {
  name: 'passes',
  models: [passes],
  migrations: [migration('0001_passes', [createTable('passes', passes.columns)])],
};

describeDatabases('live lists whose rows come and go by time', (database) => {
  let db: Database;
  let first: LiveApp;
  let second: LiveApp;
  /** The processes read it; it stands still until a test moves it. */
  const start = Date.parse('2030-01-01T12:00:00.000Z');
  let nowMs = start;
  const clock = { now: () => new Date(nowMs) };
  const at = (minutes: number) => new Date(start + minutes * MINUTE).toISOString();
  const url = ({ url: tickets }: LiveApp) => tickets.replace('/tickets', '/passes');
  const followers: Follower[] = [];

  async function follow(person: 'ann' | 'bob', query = '', on = first): Promise<Follower> {
    const follower = await new Follower(person, query).connect(url(on));
    followers.push(follower);
    return follower;
  }
  async function pass(title: string, from: number, until: number | null, person: 'ann' | 'bob' = 'ann'): Promise<string> {
    const values = { title, from_at: at(from), until_at: until === null ? null : at(until) };
    const { status, body } = await send(url(first), person, 'POST', values);
    expect(status).toBe(201);
    return body.id as string;
  }
  /** What came since, short. */
  const newsOf = (follower: Follower, since: number) =>
    follower.log
      .slice(since)
      .map(({ event, data }) => (event === 'upsert' ? `${data.item.title} ${data.item.state}` : event === 'remove' ? data.key : event));

  const withoutReady = (news: readonly unknown[]) => news.filter((each) => each !== 'ready');

  beforeAll(async () => {
    db = database.db;
    await migrate(db, [coreTables, passModule]);
    const parts = { mount: { '/v1': { '/passes': PassController } }, modules: [passModule], clock };
    first = await startLive(db, parts);
    second = await startLive(await database.open(), parts);
  });
  afterEach(async () => {
    for (const follower of followers.splice(0)) {
      expect(removedUnknown(follower), 'keys that were removed and not in the list').toEqual([]);
      await follower.disconnect();
    }
    nowMs = start;
    await db.query('delete from passes');
    await db.query('delete from kit_changes');
  });
  afterAll(async () => {
    for (const each of [first, second]) await each.app.close();
  });

  test('a row leaves the lists of every process when its time has come, and nothing else is sent', async () => {
    const ending = await pass('ending', -60, 5);
    await pass('staying', -60, 15);
    const [here, there] = [await follow('ann'), await follow('ann', '', second)];
    for (const each of [here, there]) await each.settled(url(first));
    const [since, sinceThere] = [here.log.length, there.log.length];
    nowMs = Date.parse(at(5)) - 1;
    await here.settled(url(first));
    expect(here.log).toHaveLength(since);
    nowMs = Date.parse(at(5));
    for (const each of [here, there]) await each.settled(url(second));
    expect(newsOf(here, since)).toEqual([ending, 'ready']);
    expect(newsOf(there, sinceThere)).toEqual([ending, 'ready']);
  });

  test('a row enters and leaves filtered lists, and its derived field changes, by time alone', async () => {
    const id = await pass('tour', 20, null);
    const [whole, soon, begun, others] = [
      await follow('ann'),
      await follow('ann', '?state=soon'),
      await follow('ann', '?state=begun', second),
      await follow('ann', '?state__ne=begun'),
    ];
    const all = [whole, soon, begun, others];
    for (const each of all) await each.settled(url(first));
    const since = all.map(({ log }) => log.length);
    nowMs = Date.parse(at(11));
    for (const each of all) await each.settled(url(first));
    nowMs = Date.parse(at(20));
    for (const each of all) await each.settled(url(first));
    expect(all.map((each, place) => newsOf(each, since[place] as number))).toEqual([
      ['tour soon', 'ready', 'tour begun', 'ready'],
      ['tour soon', 'ready', id, 'ready'],
      ['tour begun', 'ready'],
      ['tour soon', 'ready', id, 'ready'],
    ]);
  });

  test('a client that comes back gets what time did while it was away, without reading the list again; in any process', async () => {
    const gone = await pass('gone', -60, 5);
    await pass('tour', 3, null);
    await pass('staying', -60, null);
    const follower = await follow('ann');
    await follower.settled(url(first));
    await follower.disconnect();
    const since = follower.log.length;
    nowMs = Date.parse(at(30));
    await follower.connect(url(second));
    await follower.settled(url(first));
    expect(new Set(withoutReady(newsOf(follower, since)))).toEqual(new Set([gone, 'tour begun']));
  });

  test('a clock that is set back brings rows back, and one that jumps takes them', async () => {
    const ending = await pass('ending', -60, 5);
    const follower = await follow('ann');
    await follower.settled(url(first));
    const since = follower.log.length;
    for (const minutes of [60, 2, 6, 0]) {
      nowMs = Date.parse(at(minutes));
      await follower.settled(url(first));
    }
    expect(newsOf(follower, since)).toEqual([ending, 'ready', 'ending begun', 'ready', ending, 'ready', 'ending begun', 'ready']);
  });

  test('a client that comes back to a process whose clock is behind gets what is not yet over there', async () => {
    await pass('ending', -60, 5);
    nowMs = Date.parse(at(6));
    const follower = await follow('ann');
    await follower.settled(url(first));
    await follower.disconnect();
    const since = follower.log.length;
    nowMs = Date.parse(at(4));
    await follower.connect(url(second));
    await follower.settled(url(first));
    expect(withoutReady(newsOf(follower, since))).toEqual(['ending begun']);
  });

  test('a write that moves the time of a row counts: sooner, later, and never', async () => {
    const id = await pass('moved', -60, 30);
    const follower = await follow('ann');
    await follower.settled(url(first));
    const change = (until: number | null) => send(`${url(first)}/${id}`, 'ann', 'PATCH', { until_at: until === null ? null : at(until) });
    await change(5);
    await follower.settled(url(first));
    nowMs = Date.parse(at(4));
    await change(8);
    nowMs = Date.parse(at(6));
    await follower.settled(url(first));
    expect(follower.rows.size).toBe(1);
    await change(null);
    nowMs = Date.parse(at(60));
    await follower.settled(url(first));
    expect(follower.rows.size).toBe(1);
    await change(61);
    await follower.settled(url(first));
    nowMs = Date.parse(at(61));
    await follower.settled(url(first));
    expect(follower.rows.size).toBe(0);
  });

  test('a stream is the same whatever rows do by time that its caller does not see', async () => {
    await pass('own', -60, 30);
    const follower = await follow('ann');
    const filtered = await follow('ann', '?title=own', second);
    for (const each of [follower, filtered]) await each.settled(url(first));
    const since = [follower, filtered].map(({ log }) => log.length);
    for (let minutes = 1; minutes < 6; minutes += 1) await pass(`of bob ${minutes}`, minutes, minutes + 5, 'bob');
    const watched = await follow('bob');
    await watched.settled(url(first));
    for (let minutes = 1; minutes < 12; minutes += 1) {
      nowMs = Date.parse(at(minutes));
      await watched.settled(url(first));
    }
    expect(watched.log.filter(({ event }) => event === 'remove')).toHaveLength(5);
    // What came after bob's rows was read with them.
    await send(url(first), 'ann', 'POST', { title: 'own', from_at: at(0), until_at: null });
    for (const each of [follower, filtered]) await each.settled(url(first));
    expect([follower, filtered].map((each, place) => newsOf(each, since[place] as number))).toEqual([
      ['own begun', 'ready'],
      ['own begun', 'ready'],
    ]);
  });

  test('a program follows what time does', async () => {
    const id = await pass('ending', -60, 5);
    const stop = new AbortController();
    const events: string[] = [];
    for await (const { event, ...data } of crudOf(first.app, passResource)
      .as({ user: { id: people.ann.id, username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false } })
      .live(undefined, { signal: stop.signal })) {
      events.push('key' in data ? `${event} ${String(data.key)}` : event);
      if (event !== 'ready') continue;
      if (events.includes(`remove ${id}`)) stop.abort();
      nowMs = Date.parse(at(5));
    }
    expect(events).toEqual([`upsert ${id}`, 'ready', `remove ${id}`, 'ready']);
  });

  test(`after random writes and times, forwards and backwards, a list is what its caller would read (seed ${SEED})`, async () => {
    let state = SEED;
    const next = (below: number): number => {
      state = (state * 48_271 + 11) % 2_147_483_647;
      return state % below;
    };
    const ids: string[] = [];
    const all = [
      await follow('ann'),
      await follow('ann', '?state=soon'),
      await follow('ann', '?state=begun', second),
      await follow('bob', '?state__ne=later', second),
    ];
    for (let round = 0; round < 12; round += 1) {
      for (let count = 0; count < 3; count += 1) {
        const person = next(3) === 0 ? 'bob' : 'ann';
        const [id] = ids.slice(next(Math.max(1, ids.length)));
        if (id === undefined || next(3) === 0) {
          const until = next(4) === 0 ? null : at(next(40));
          const made = await send(url(first), person, 'POST', { title: `p${round}`, from_at: at(next(40) - 10), until_at: until });
          // One that has ended is out of its maker's sight.
          if (made.status === 201) ids.push(made.body.id as string);
        } else if (next(4) === 0) await send(`${url(first)}/${id}`, person, 'DELETE');
        else await send(`${url(first)}/${id}`, person, 'PATCH', next(2) === 0 ? { from_at: at(next(40)) } : { until_at: at(next(40)) });
      }
      nowMs = start + next(30 * MINUTE);
      for (const each of all) await each.settled(url(second));
    }
  });

  test('with the clock of the system a row leaves when its time has come', async () => {
    const third = await startLive(await database.open(), { mount: { '/v1': { '/passes': PassController } }, modules: [passModule] });
    const follower = await follow('ann', '', third);
    const wasSeen = () => follower.log.some(({ event }) => event === 'upsert');
    // A machine that is busy may not be there in time to see the row: it stays longer then.
    for (let ms = 1_000; ms <= 64_000 && !wasSeen(); ms *= 4) {
      const until = Date.now() + ms;
      await send(url(third), 'ann', 'POST', { title: 'short', from_at: at(0), until_at: new Date(until).toISOString() });
      await vi.waitFor(() => expect(wasSeen() || Date.now() >= until).toBe(true), { timeout: 120_000, interval: 5 });
      if (!wasSeen()) continue;
      await vi.waitFor(() => expect(follower.rows.size).toBe(0), { timeout: 120_000, interval: 5 });
      expect(Date.now()).toBeGreaterThanOrEqual(until);
    }
    expect(wasSeen()).toBe(true);
    await follower.disconnect();
    await third.app.close();
  });
});

/** Keys of `remove` that were not in the list of the client. */
function removedUnknown({ log }: Follower): unknown[] {
  const known = new Set<unknown>();
  const wrong: unknown[] = [];
  for (const { event, data } of log) {
    if (event === 'reset') known.clear();
    else if (event === 'upsert') known.add(data.key);
    else if (event === 'remove' && !known.delete(data.key)) wrong.push(data.key);
  }
  return wrong;
}
