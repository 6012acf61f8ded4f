import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { AdminApp, type Browser } from '../../../test/admin/admin-app.ts';
import { job, jobs, runDueJobs, startJob } from '../../contrib/jobs/index.ts';
import { webhooks } from '../../contrib/webhooks/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import type { AdminSiteState } from '../wire/wire.ts';

const clock = fakeClock('2026-03-01T12:00:00.000Z');
const work = job('work', { input: z.object({}), run: async () => {} });
let isBroken = false;
const gateway = {
  name: 'gateway',
  healthChecks: {
    gateway: () => {
      if (isBroken) throw new Error('connect ECONNREFUSED db.internal:5432');
    },
  },
};

describeDatabases(
  'the state of the admin site',
  (database) => {
    let site: AdminApp;
    let staff: Browser;
    beforeAll(async () => {
      site = await new AdminApp(database.db, [jobs({ jobs: [work] }), webhooks(), gateway], { clock }).ready();
      staff = await site.browser();
    });
    afterAll(() => site.close());
    const state = async (): Promise<Readonly<Record<string, readonly [string, string]>>> => {
      // An answer is kept for a few seconds.
      clock.advance(10_000);
      const { status, body } = await site.get(staff, 'state');
      expect(status).toBe(200);
      return Object.fromEntries((body as AdminSiteState).parts.map(({ name, tone, text }) => [name, [tone, text]]));
    };

    test('names databases, checks of the application and workers', async () => {
      const parts = await state();
      expect(Object.values(parts).map(([tone]) => tone)).toEqual(Object.keys(parts).map(() => 'good'));
      expect(Object.keys(parts)).toEqual(expect.arrayContaining(['Database', 'Gateway', 'Jobs workers', 'Deliveries workers']));
      expect(Object.keys(parts).includes('Database writes')).toBe(database.db.dialect === 'sqlite');
    });

    test('says which version answers, since when it runs, and how fast requests were answered', async () => {
      clock.advance(10_000);
      const { body } = await site.get(staff, 'state');
      const { at, process } = body as AdminSiteState;
      expect(process?.version).toBe(site.app.version);
      expect(Date.parse(process?.started_at ?? '')).toBeLessThan(Date.parse(at));
      expect((await state())['Speed']?.[0]).toBe('good');
    });

    test('warns of due work that no worker takes, until one does', async () => {
      await database.db.transaction((tx) => startJob(tx, work, {}));
      expect((await state())['Jobs workers']?.[0]).toBe('good');
      clock.advance(120_000);
      const late = (await state())['Jobs workers'];
      expect(late).toEqual(['warning', expect.stringContaining('Start a worker: `kit jobs work`.')]);
      await runDueJobs(database.db);
      expect((await state())['Jobs workers']?.[0]).toBe('good');
    });

    test('says that a check failed, and not why: the reason may name hosts', async () => {
      isBroken = true;
      const failed = (await state())['Gateway'];
      isBroken = false;
      expect(failed).toEqual(['bad', 'Failed; the log has the reason.']);
      expect(site.logged.join()).toContain('db.internal');
    });
  },
  { database: { clock } },
);
