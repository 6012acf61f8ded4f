import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { auditLog } from '../../test/audit-log.ts';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import { job, jobs, runDueJobs, startJob, startJobs } from '../contrib/jobs/index.ts';
import { runSchedules } from '../contrib/jobs/running/run-schedules.ts';
import { jobsOf } from '../contrib/jobs/rows/jobs.ts';
import { defineErrors } from '../errors/catalog.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';

const START = '2026-03-01T12:00:30.000Z';
const clock = fakeClock(START);
const errors = defineErrors('press', { out_of_paper: { status: 503, detail: 'The press has no paper.', remedy: 'Add paper.' } });
let isBroken = true;
const print = job('print', {
  input: z.object({ n: z.int() }),
  retry: { attempts: 1 },
  run({ input: { n } }) {
    if (isBroken) throw n % 2 === 0 ? errors.out_of_paper() : new Error('jammed');
  },
});
const clean = job('clean', {
  input: z.object({ deep: z.boolean() }),
  schedule: { cron: '* * * * *', missed: 'once', input: { deep: true } },
  run: () => Promise.resolve(),
});

describeDatabases(
  'operating jobs in the admin site',
  (database) => {
    let site: AdminApp;
    let staff: Browser;
    beforeAll(async () => {
      clock.set(START);
      isBroken = true;
      site = await new AdminApp(database.db, [jobs({ jobs: [print, clean] })], { clock }).ready();
      staff = await site.browser();
    });
    afterAll(() => site.close());

    const tick = () => runSchedules(jobsOf(database.db));
    const rowsOf = async (list: string) => (await site.get(staff, `resources/${list}`)).body.items;
    const alerts = async (): Promise<string[]> => {
      const { parts } = (await site.get(staff, 'overview?range=24h')).body;
      const [health] = parts;
      expect(health).toMatchObject({ title: 'Health', tiles: expect.arrayContaining([expect.objectContaining({ label: 'Database' })]) });
      return health.tables[0].rows.map(({ title }: { title: string }) => title);
    };
    const started = async () =>
      Number((await database.db.query<{ n: number | bigint }>("select count(*) as n from jobs where name = 'clean'"))[0]?.n);
    const audited = async (action: string) => (await auditLog(database.db, { action })).map(({ target_id: id }) => id);

    test('a schedule has its next run, and after a run its last result', async () => {
      expect(await rowsOf('job-schedules')).toMatchObject([
        { id: 'clean', values: { state: { value: 'active' }, next_run: '2026-03-01T12:01:00.000Z', last_result: null, cron: '* * * * *' } },
      ]);
      clock.set('2026-03-01T12:01:05.000Z');
      await tick();
      await runDueJobs(database.db);
      const [row] = await rowsOf('job-schedules');
      expect(row.values).toMatchObject({ next_run: '2026-03-01T12:02:00.000Z', last_result: { value: 'succeeded', tone: 'good' } });
      const [facts] = (await site.get(staff, 'resources/job-schedules/clean')).body.sections;
      const [last] = await database.db.query<{ id: string }>("select id from jobs where name = 'clean'");
      expect(facts.values.last_job).toMatchObject({ resource: 'jobs', id: last?.id });
    });

    test('run now starts one job with the input of the schedule, is recorded, and leaves the next run where it is', async () => {
      const before = await started();
      expect((await site.act(staff, 'job-schedules', 'run-now', ['clean'])).body).toMatchObject({ message: '1 schedule started.' });
      expect(await started()).toBe(before + 1);
      const [newest] = await database.db.query<{ input: string }>("select input from jobs where name = 'clean' order by id desc limit 1");
      expect(JSON.parse(newest?.input ?? '')).toEqual({ deep: true });
      const [row] = await rowsOf('job-schedules');
      expect(row.values).toMatchObject({ next_run: '2026-03-01T12:02:00.000Z', last_result: { value: 'queued' } });
      expect(await audited('job_schedule.run')).toEqual(['clean']);
      expect((await site.act(staff, 'job-schedules', 'run-now', ['print'])).body.failures).toMatchObject([
        { message: 'There is no recurring job of this name.' },
      ]);
    });

    test('a paused schedule starts nothing, whether a worker ran during the pause or not; a resumed one goes on with the next run', async () => {
      const before = await started();
      expect((await site.act(staff, 'job-schedules', 'pause', ['clean'])).status).toBe(200);
      clock.set('2026-03-01T12:02:05.000Z');
      await tick();
      expect(await started()).toBe(before);
      const record = (await site.get(staff, 'resources/job-schedules/clean')).body;
      expect(record).toMatchObject({ state: { value: 'paused' }, values: { next_run: null }, actions: ['run-now', 'resume'] });
      // No worker from here to the end of the pause: `missed: 'once'` must not start a job for these ticks.
      clock.set('2026-03-01T12:05:30.000Z');
      await site.act(staff, 'job-schedules', 'resume', ['clean']);
      await tick();
      expect(await started()).toBe(before);
      clock.set('2026-03-01T12:06:01.000Z');
      await tick();
      expect(await started()).toBe(before + 1);
      expect([await audited('job_schedule.paused'), await audited('job_schedule.resumed')]).toEqual([['clean'], ['clean']]);
      // Resuming what is not paused changes nothing and records nothing.
      await site.act(staff, 'job-schedules', 'resume', ['clean']);
      expect(await audited('job_schedule.resumed')).toEqual(['clean']);
    });

    test('a schedule that no worker has started in time is late', async () => {
      clock.set('2026-03-01T12:09:00.000Z');
      const [row] = await rowsOf('job-schedules');
      expect(row.values.state).toMatchObject({ value: 'late', tone: 'bad' });
      expect(await alerts()).toContain('Jobs: Late schedules');
      await tick();
      expect((await rowsOf('job-schedules'))[0].values.state.value).toBe('active');
      // What the overview has counted is kept for a few seconds.
      clock.advance(10_000);
      expect(await alerts()).not.toContain('Jobs: Late schedules');
    });

    test('failed jobs are grouped by name and error; all of a group are retried, with an entry for each, and no others', async () => {
      await database.db.transaction((tx) =>
        startJobs(
          tx,
          print,
          Array.from({ length: 120 }, (_, n) => ({ n: n * 2 })),
        ),
      );
      await database.db.transaction((tx) => startJob(tx, print, { n: 1 }));
      await runDueJobs(database.db);
      const groups = await rowsOf('job-failures');
      expect(groups.map(({ title, values }: { title: string; values: { count: number } }) => [title, values.count]).sort()).toEqual([
        ['print: job_failed', 1],
        ['print: out_of_paper', 120],
      ]);
      const group = groups.find(({ title }: { title: string }) => title === 'print: out_of_paper');
      expect(group.values.message).toBe('The press has no paper.');
      const record = (await site.get(staff, `resources/job-failures/${encodeURIComponent(group.id)}`)).body;
      expect(record.sections[1]).toMatchObject({
        rows: { length: 10 },
        more: { resource: 'jobs', filters: { status: 'failed', name: 'print', code: 'out_of_paper' } },
      });
      const preview = await site.send(staff, 'POST', 'resources/job-failures/actions/retry-all/preview', { ids: [group.id], fields: {} });
      expect(preview.body.message).toBe('120 jobs are queued again.');

      isBroken = false;
      let rest: string[] = [group.id];
      const requests: string[] = [];
      while (rest.length > 0) {
        const { body } = await site.act(staff, 'job-failures', 'retry-all', rest);
        requests.push(body.message);
        rest = body.rest;
      }
      expect(requests).toEqual(['100 jobs queued again.', '120 jobs queued again.']);
      expect((await rowsOf('job-failures')).map(({ title }: { title: string }) => title)).toEqual(['print: job_failed']);
      expect(await audited('job.retried')).toHaveLength(120);
    });

    test('a job of a group that cannot be retried is named, and tried once', async () => {
      isBroken = true;
      await runDueJobs(database.db);
      const [failed] = await database.db.query<{ id: string }>(
        "select id from jobs where status = 'failed' and error_code = 'job_failed' limit 1",
      );
      await database.db.query('update jobs set unique_key = $2 where id = $1', [failed?.id, 'taken']);
      await database.db.transaction((tx) => startJob(tx, print, { n: 1 }, { uniqueKey: 'taken' }));
      const { body } = await site.act(staff, 'job-failures', 'retry-all', ['print:job_failed']);
      expect(body).toMatchObject({ message: '0 jobs queued again.', failures: [{ id: failed?.id }], rest: [] });
    });

    test('the dialog that cancels a job names both buttons', async () => {
      const { resources } = (await site.get(staff, 'session')).body.site;
      const list = resources.find(({ name }: { name: string }) => name === 'jobs');
      expect(list.actions.find(({ name }: { name: string }) => name === 'cancel')).toMatchObject({
        label: { one: 'Cancel the job' },
        dismissLabel: 'Keep running',
      });
    });
  },
  { database: { clock } },
);
