import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { jobs } from '../../src/contrib/jobs/index.ts';
import { job } from '../../src/contrib/jobs/declare/job.ts';
import { startJob } from '../../src/contrib/jobs/start/start-job.ts';
import { runDueJobs } from '../../src/contrib/jobs/manage/work-jobs.ts';
import type { PrometheusRegistry } from '../../src/contrib/metrics/prometheus-registry.ts';
import { metrics } from '../../src/contrib/metrics/index.ts';
import { allowAny } from '../../src/index.ts';
import { describeDatabases, fakeClock, testApp, type TestApp } from '../../src/testing/index.ts';

const clock = fakeClock('2026-03-01T12:00:00.000Z');
const now = performance.now.bind(performance);
let aheadMs = 0;
const input = z.object({ n: z.int() });
let lost: string | undefined;
const good = job('good', { input, run: () => clock.advance(2000) });
const bad = job('bad', {
  input,
  queue: 'mail',
  retry: { attempts: 2, firstDelaySeconds: 1 },
  run: () => Promise.reject(new Error('private')),
});
const taken = job('taken', {
  input,
  queue: 'taken',
  run: async ({ db, id }) => void (await db.query(`update jobs set claim_token = 'another' where id = $1`, [(lost = id)])),
});
const idle = job('idle', { input, queue: 'idle', run: () => undefined });
let seen = '';
let scrapeNow: () => Promise<string> = async () => '';
const watching = job('watching', { input, queue: 'watching', run: async () => void (seen = await scrapeNow()) });

describeDatabases(
  'metrics of jobs',
  (database) => {
    let app: TestApp;
    beforeAll(async () => {
      const modules = [
        metrics({ path: '/metrics', permission: allowAny, process: false }),
        jobs({ jobs: [good, bad, taken, idle, watching] }),
      ];
      app = await testApp({ database: database.db, clock, modules, mount: {} });
    });
    afterAll(async () => {
      vi.restoreAllMocks();
      await app.close();
    });
    /** A reading of the database is shown for five seconds; they pass. */
    const forgetReadings = () => {
      aheadMs += 6000;
      vi.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs);
    };
    const scrape = () => (app.app.registry.metrics as PrometheusRegistry).text();
    const valueIn = (text: string, series: string): number =>
      Number(
        text
          .split('\n')
          .find((line) => line.startsWith(`${series} `))
          ?.slice(series.length) ?? Number.NaN,
      );
    const of = (queue: string, more = ''): string => `{database="default",queue="${queue}"${more}}`;

    test('depth and age are shown by queue, runs are counted by outcome and timed', async () => {
      const start = (definition: typeof good, options = {}) => database.db.transaction((tx) => startJob(tx, definition, { n: 1 }, options));
      await start(good);
      await start(good, { priority: 5 });
      await start(good, { delaySeconds: 7200 });
      await start(bad, { serialKey: 'first-and-only' });
      await start(taken);
      clock.advance(90_000);
      const before = await scrape();
      expect(valueIn(before, `kit_jobs_ready${of('default')}`)).toBe(2);
      expect(valueIn(before, `kit_jobs_waiting${of('default')}`)).toBe(1);
      expect(valueIn(before, `kit_jobs_waiting${of('mail')}`)).toBe(1);
      expect(valueIn(before, `kit_jobs_oldest_ready_age_seconds${of('default')}`)).toBe(90);
      expect(valueIn(before, `kit_jobs_ready${of('idle')}`)).toBe(0);
      await runDueJobs(database.db);
      await database.db.query('delete from jobs where id = $1', [lost]);
      clock.advance(3_600_000);
      await runDueJobs(database.db);
      const after = await scrape();
      const runs = (queue: string, outcome: string): number => valueIn(after, `kit_jobs_runs_total${of(queue, `,outcome="${outcome}"`)}`);
      expect(runs('default', 'succeeded')).toBe(2);
      expect([runs('mail', 'retrying'), runs('mail', 'failed')]).toEqual([1, 1]);
      expect(runs('taken', 'lost')).toBe(1);
      expect(valueIn(after, `kit_jobs_run_duration_seconds_count${of('default')}`)).toBe(2);
      expect(valueIn(after, `kit_jobs_run_duration_seconds_sum${of('default')}`)).toBeGreaterThanOrEqual(4);
      expect(valueIn(after, `kit_jobs_claim_duration_seconds_count${of('default')}`)).toBeGreaterThanOrEqual(1);
      expect(after).not.toMatch(/private|first-and-only/);
    });

    test('jobs that run, that failed permanently and whose worker is gone are shown', async () => {
      const begin = () => database.db.transaction((tx) => startJob(tx, watching, { n: 1 }));
      const { id } = await begin();
      scrapeNow = () => {
        forgetReadings();
        return scrape();
      };
      await runDueJobs(database.db);
      expect(valueIn(seen, `kit_jobs_running${of('watching')}`)).toBe(1);
      expect(valueIn(seen, 'kit_jobs_failed{database="default"}')).toBe(1);
      expect(valueIn(seen, 'kit_jobs_expired_leases{database="default"}')).toBe(0);
      const orphan = await begin();
      await database.db.query(`update jobs set status = 'running', claim_token = 'gone', claimed_until = $2 where id = $1`, [
        orphan.id,
        new Date(clock.now().getTime() - 1000),
      ]);
      expect(orphan.id).not.toBe(id);
      expect(valueIn(await scrapeNow(), 'kit_jobs_expired_leases{database="default"}')).toBe(1);
    });
  },
  { database: { clock } },
);
