import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import type { User } from '../../../auth/people/principal.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { testApp, type TestApp } from '../../../testing/test-app.ts';
import { accounts, accountsOf, createUser, deactivateUser } from '../../accounts/index.ts';
import { job } from '../declare/job.ts';
import { jobs } from '../module.ts';
import { startJob } from '../start/start-job.ts';
import { findJob } from '../rows/store.ts';
import { runDueJobs } from '../manage/work-jobs.ts';

const input = z.object({});
const ran: string[] = [];
const acting = job('acting', { input, actsForOwner: true, retry: { firstDelaySeconds: 1 }, run: () => void ran.push('acting') });
const asking = job('asking', { input, run: async ({ mayAct }) => void ran.push(`may act: ${await mayAct()}`) });
const members = new Set<string>();
let isDown = false;

describeDatabases('a job that acts for its owner', (database) => {
  let kit: TestApp;
  let user: User;
  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      modules: [accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }), jobs({ jobs: [acting, asking] })],
      tenant: () => null,
      memberships: async (_db, asked) => {
        if (isDown) throw new Error('down');
        return asked.map(({ userId, tenant }) => (members.has(`${userId} ${tenant}`) ? { roles: [] } : null));
      },
      mount: {},
    });
  });
  afterAll(() => kit.close());
  let people = 0;
  beforeEach(async () => {
    ran.length = 0;
    isDown = false;
    user = await createUser(database.db, { username: `person${(people += 1)}` }, accountsOf(database.db).management(null));
    members.add(`${user.id} acme`);
  });

  const run = async (definition: typeof acting, tenantKey?: string, owner = user.id) => {
    const { id } = await database.db.transaction((tx) => startJob(tx, definition, {}, { owner, tenantKey }));
    await runDueJobs(database.db);
    return findJob(database.db, id);
  };

  test('runs for an active user, and in a tenant for a member', async () => {
    expect([(await run(acting))?.status, (await run(acting, 'acme'))?.status]).toEqual(['succeeded', 'succeeded']);
    expect(ran).toEqual(['acting', 'acting']);
  });

  test('fails permanently, without being run, for a former member, a deactivated user and an owner who is not a user', async () => {
    members.clear();
    const found = [await run(acting, 'acme')];
    await deactivateUser(database.db, user.id);
    found.push(await run(acting), await run(acting, undefined, 'billing'));
    for (const each of found) expect(each).toMatchObject({ status: 'failed', attempts: 1, error_code: 'owner_not_allowed' });
    expect(ran).toEqual([]);
  });

  test('is tried again where the memberships could not be read', async () => {
    isDown = true;
    expect(await run(acting, 'acme')).toMatchObject({ attempts: 1, finished_at: null });
    expect(ran).toEqual([]);
  });

  test('a job without the option runs, and can ask', async () => {
    await run(asking, 'acme');
    members.clear();
    await run(asking, 'acme');
    expect(ran).toEqual(['may act: true', 'may act: false']);
  });
});
