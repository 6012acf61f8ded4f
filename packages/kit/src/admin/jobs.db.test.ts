import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import { job, jobs, runDueJobs, startJob } from '../contrib/jobs/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';

const clock = fakeClock('2026-03-01T12:00:00.000Z');
const work = job('work', {
  input: z.object({ n: z.int(), token: z.string() }),
  retry: { attempts: 1 },
  sensitive: ['token'],
  async run({ input: { n }, step, progress }) {
    await step('render', () => n);
    await progress(60, 'rendered');
    if (n < 0) throw new Error('no');
  },
});

describeDatabases(
  'jobs in the admin site',
  (database) => {
    let site: AdminApp;
    let staff: Browser;
    beforeAll(async () => {
      site = await new AdminApp(database.db, [jobs({ jobs: [work] })], { clock }).ready();
      staff = await site.browser();
    });
    afterAll(() => site.close());
    const started = async (n: number): Promise<string> =>
      (await database.db.transaction((tx) => startJob(tx, work, { n, token: 'hidden' }))).id;

    test('a list with state and progress, a record with attempts and steps, nothing sensitive', async () => {
      const [good, bad] = [await started(1), await started(-1)];
      await runDueJobs(database.db);
      const list = await site.get(staff, 'resources/jobs');
      const rows = (list.body as { items: { id: string; values: { progress: number; status: { value: string } } }[] }).items;
      expect(rows.map(({ id, values }) => [id, values.status.value, values.progress])).toEqual([
        [bad, 'failed', 60],
        [good, 'succeeded', 100],
      ]);
      // Inputs and results may be large: a page of the list does not have them.
      expect(list.text).not.toMatch(/"(?:input|result)"/);
      const record = await site.get(staff, `resources/jobs/${bad}`);
      expect(record.body).toMatchObject({ state: { value: 'failed' }, actions: ['retry'] });
      const text = JSON.stringify(record.body);
      expect(text).toContain('render');
      expect(text).not.toContain('hidden');
    });

    test('retry and cancel are recorded; what cannot be is said', async () => {
      const id = await started(-1);
      await runDueJobs(database.db);
      const retried = await site.act(staff, 'jobs', 'retry', [id]);
      expect(retried.body).toMatchObject({ message: '1 job queued again.' });
      const cancelled = await site.act(staff, 'jobs', 'cancel', [id]);
      expect(cancelled.status).toBe(200);
      const again = await site.act(staff, 'jobs', 'retry', ['01890000-0000-7000-8000-000000000000']);
      expect(again.body).toMatchObject({ failures: [{ message: 'The job does not exist.' }] });
    });

    test('the page of a record lists the jobs whose serial or unique key names it, those that have ended too, and no others', async () => {
      const user = await site.newUser();
      const key = `user:${user.id}`;
      const start = async (options: object) =>
        (await database.db.transaction((tx) => startJob(tx, work, { n: 1, token: 'hidden' }, options))).id;
      const [serial, unique] = [await start({ serialKey: key }), await start({ uniqueKey: key })];
      await start({ serialKey: `${key}x` });
      await runDueJobs(database.db);
      const waiting = await start({ serialKey: key, runAt: new Date(clock.now().getTime() + 60_000) });
      const { sections } = (await site.get(staff, `resources/users/${user.id}`)).body;
      const timeline = sections.find(({ title }: { title: string }) => title === 'History');
      interface Entry {
        readonly text: string;
        readonly link: { readonly resource: string; readonly id: string };
        readonly folded?: readonly Entry[];
      }
      const entries = (timeline.entries as readonly Entry[]).flatMap((entry) => [entry].concat(entry.folded ?? []));
      const shown = entries.filter(({ link }) => link.resource === 'jobs').map(({ link, text }) => [link.id, text]);
      expect(shown).toEqual([
        [waiting, 'queued'],
        [unique, 'succeeded'],
        [serial, 'succeeded'],
      ]);
      expect(timeline.lists).toEqual([{ resource: 'jobs', filters: { record: key }, text: 'Jobs' }]);
      const record = (await site.get(staff, `resources/jobs/${serial}`)).body;
      const links = record.sections.find(({ title }: { title: string }) => title === 'Owner and keys');
      expect(links.values.serial_key).toEqual({ resource: 'users', id: user.id, text: user.username });
      expect((await site.get(staff, `resources/jobs?filter.record=${key}`)).body.count).toBe(3);
      expect((await site.get(staff, `resources/jobs?filter.serial_key=${key}`)).body.count).toBe(2);
    });

    test('each filter finds its jobs: queued ones whatever they wait for, and no others', async () => {
      const listed = async (filter: string): Promise<string[]> =>
        (await site.get(staff, `resources/jobs?${filter}`)).body.items.map(
          ({ values }: { values: { status: { value: string } } }) => values.status.value,
        );
      for (const status of ['queued', 'succeeded', 'failed', 'cancelled'])
        expect([status, new Set(await listed(`filter.status=${status}`))]).toEqual([status, new Set([status])]);
      expect(await listed('filter.status=running')).toEqual([]);
      const [{ n: queued }] = (await database.db.query<{ n: number | bigint }>(
        "select count(*) as n from jobs where status = 'queued'",
      )) as [{ n: number | bigint }];
      expect(await listed('filter.status=queued')).toHaveLength(Number(queued));
      expect((await listed('filter.due=waiting')).length + (await listed('filter.due=ready')).length).toBe(Number(queued));
      // Longer than any job has it.
      for (const filter of ['name', 'queue', 'code', 'owner', 'record', 'serial_key'])
        expect([filter, await listed(`filter.${filter}=${'x'.repeat(300)}`)]).toEqual([filter, []]);
    });

    test('the overview says depth, runs and durations', async () => {
      await started(1);
      const overview = await site.get(staff, 'overview?range=24h');
      expect(overview.text).toContain('Oldest ready');
      expect(overview.text).toContain('Durations of the newest jobs');
    });

    test('a tile leads to the jobs it counts, and to no others', async () => {
      clock.advance(3 * 86_400_000);
      const old = await started(-1);
      await runDueJobs(database.db);
      clock.advance(3 * 86_400_000);
      const failed = await started(-1);
      await runDueJobs(database.db);
      const ready = await started(1);
      // The session of before has ended meanwhile.
      const later = await site.browser();
      const { parts } = (await site.get(later, 'overview?range=24h')).body;
      const tiles = parts.find(({ title }: { title: string }) => title === 'Jobs').tiles as {
        label: string;
        value: number;
        link: { resource: string; filters: Record<string, string> };
      }[];
      const listed = async (label: string): Promise<string[]> => {
        const tile = tiles.find((each) => each.label === label);
        const filters = Object.entries(tile?.link.filters ?? {}).map(([name, value]) => `filter.${name}=${encodeURIComponent(value)}`);
        const { items } = (await site.get(later, `resources/jobs?${filters.join('&')}`)).body;
        expect(items).toHaveLength(tile?.value ?? -1);
        return items.map(({ id }: { id: string }) => id);
      };
      expect(await listed('Failed')).toEqual([failed]);
      expect(await listed('Failed')).not.toContain(old);
      expect(await listed('Ready')).toContain(ready);
    });
  },
  { database: { clock } },
);
