import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { siteFolder } from '../../test/admin/admin-app.ts';
import { addPerson, people, PEOPLE_TABLE } from '../../test/people.ts';
import { createApp } from '../app/assemble/create-app.ts';
import { migrateApp } from '../app/data/migration-modules.ts';
import { list } from '../db/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { portal, portalLink } from './index.ts';
import { openOnce, removeExpired } from './links/rows.ts';
import { portalLinks } from './models.ts';

describeDatabases('links that have ended', (database) => {
  const files = siteFolder();
  afterAll(() => files.remove());
  afterEach(() => vi.useRealTimers());

  test('are removed in the background with their sessions, though nobody makes another', async () => {
    await database.db.execute(PEOPLE_TABLE);
    const clock = fakeClock('2030-01-15T10:00:00.000Z');
    const app = createApp({
      database: database.db,
      users: people,
      modules: [portal({ site: files.url })],
      mount: {},
      clock,
      log: { level: 'silent' },
    });
    try {
      await migrateApp(app);
      await app.ready();
      const { id: user } = await addPerson(app.db, 'ada');
      const make = async (expiresIn: number) => (await portalLink(app.db, { user, expiresIn })).id;
      const [ended, opened, open, unused] = [await make(60), await make(60), await make(60), await make(86_400)];
      const at = clock.now();
      await openOnce(app.db, opened, { now: at, session: 'a'.repeat(64), until: new Date(at.getTime() + 600_000) });
      await openOnce(app.db, open, { now: at, session: 'b'.repeat(64), until: new Date(at.getTime() + 601_000) });
      clock.advance(600_000);
      const left = async () => (await list(app.db, portalLinks)).map(({ id }) => id).toSorted();
      expect(await left()).toEqual([ended, opened, open, unused].toSorted());
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      await app.start();
      await vi.advanceTimersByTimeAsync(30_000);
      vi.useRealTimers();
      await expect.poll(left, { timeout: 30_000 }).toEqual([open, unused].toSorted());
      expect(await removeExpired(app.db, clock.now())).toBe(0);
    } finally {
      await app.close();
    }
  });
});
