import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser, HOST } from '../../../test/admin/admin-app.ts';
import type { AdminOverview } from '../../app/admin/sections.ts';
import { openDatabase } from '../../db/index.ts';
import type { Database } from '../../db/engine/db.ts';
import { type LongStatement, longStatement } from '../../db/engine/long-statement.ts';
import { fakeClock } from '../../testing/fake-clock.ts';

const part: AdminOverview = { title: 'Slow', tiles: [], charts: [], tables: [] };
const counts: PromiseWithResolvers<AdminOverview>[] = [];
/** What a statement of each count would get. */
const statements: (LongStatement | undefined)[] = [];
const slow = {
  name: 'slow',
  admin: {
    overview: () => {
      const counting = Promise.withResolvers<AdminOverview>();
      counts.push(counting);
      statements.push(longStatement('an overview'));
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

test('it has the time of a request, and goes on for the others when the client that asked first goes away', async () => {
  clock.advance(5_001);
  const leaving = new AbortController();
  const { cookie } = staff;
  const first = site.app.inject({ url: '/admin/api/overview?range=30d', headers: { host: HOST, cookie }, signal: leaving.signal }).then(
    () => 'answered',
    () => 'left',
  );
  await counting(4);
  const other = ask();
  leaving.abort();
  expect(await first).toBe('left');
  await site.get(staff, 'session');
  expect(statements[3]).toMatchObject({ reads: 'an overview', owner: `user ${staff.userId}` });
  expect(statements[3]?.deadlineMs).toBeLessThanOrEqual(10_000);
  expect(statements[3]?.signal?.aborted).toBe(false);
  counts[3]?.resolve(part);
  expect((await other).status).toBe(200);
});
