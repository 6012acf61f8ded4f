import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../../test/admin/admin-app.ts';
import type { AdminOverview } from '../../app/admin/shapes.ts';
import { openDatabase } from '../../db/index.ts';
import type { Database } from '../../db/engine/db.ts';
import { fakeClock } from '../../testing/fake-clock.ts';

const part: AdminOverview = { title: 'Slow', tiles: [], charts: [], tables: [] };
const counts: PromiseWithResolvers<AdminOverview>[] = [];
const slow = {
  name: 'slow',
  admin: {
    overview: () => {
      const counting = Promise.withResolvers<AdminOverview>();
      counts.push(counting);
      return counting.promise;
    },
  },
};

const clock = fakeClock();
let db: Database;
let site: AdminApp;
let staff: Browser;
beforeAll(async () => {
  db = await openDatabase('sqlite::memory:');
  site = await new AdminApp(db, [slow], { clock }).ready();
  staff = await site.browser();
});
afterAll(async () => {
  await site.close();
  await db.close();
});

const ask = () => site.get(staff, 'overview?range=30d');
async function counting(number: number): Promise<void> {
  await expect.poll(() => counts.length).toBe(number);
}

test('many who watch the same range cost one count, also when it takes longer than it is kept', async () => {
  const first = ask();
  await counting(1);
  clock.advance(60_000);
  const others = [ask(), ask(), ask()];
  // Answered after them: they have asked by now.
  await site.get(staff, 'session');
  counts[0]?.resolve(part);
  for (const answer of await Promise.all([first, ...others])) expect(answer.status).toBe(200);
  expect(counts).toHaveLength(1);
  expect((await ask()).status).toBe(200);
  expect(counts).toHaveLength(1);
});

test('it is counted again after five seconds, and after a failure at once', async () => {
  clock.advance(5_001);
  const failing = ask();
  await counting(2);
  counts[1]?.reject(new Error('the database is gone'));
  expect((await failing).status).toBe(500);
  const again = ask();
  await counting(3);
  counts[2]?.resolve(part);
  expect((await again).status).toBe(200);
});
