import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { startCommitProxy, type CommitProxy } from '../../../../test/jobs/commit-proxy.ts';
import { migrateJobs } from '../../../../test/jobs/describe-jobs.ts';
import { openDatabase, type Database } from '../../../db/index.ts';
import { fakeClock } from '../../../testing/index.ts';
import { createPostgresDatabase, type DatabasePlace } from '../../../testing/test-database.ts';
import { job } from '../declare/job.ts';
import { unbindJobs, useJobs } from '../rows/jobs.ts';
import { startJob } from '../start/start-job.ts';
import { findJob } from '../rows/store.ts';
import { runDueJobs, startJobWorker } from '../manage/work-jobs.ts';

const clock = fakeClock('2026-03-01T12:00:00.000Z');
let proxy: CommitProxy;
let cut: 'before' | 'after' | undefined;

const effect = `insert into effects (what) values ($1)`;
/** Only the first attempt loses its connection. */
const arm = (attempt: number): void => {
  if (cut !== undefined && attempt === 1) proxy.cutNext(cut);
};
const input = z.object({ what: z.string() });
const retry = { attempts: 3, firstDelaySeconds: 1 };
const committed = job('committed', {
  input,
  retry,
  result: z.object({ done: z.boolean() }),
  run: ({ input: { what }, attempt, commit }) =>
    commit(async (tx) => {
      await tx.query(effect, [what]);
      arm(attempt);
      return { done: true };
    }),
});
const stepped = job('stepped', {
  input,
  retry,
  async run({ input: { what }, attempt, step }) {
    await step.commit('effect', async (tx) => {
      await tx.query(effect, [what]);
      arm(attempt);
    });
  },
});

const once = job('once', { input, retry: { attempts: 1 }, run: () => Promise.resolve() });

describe('a connection that is lost during COMMIT', () => {
  let place: DatabasePlace;
  let db: Database;
  beforeAll(async () => {
    place = await createPostgresDatabase(inject('postgresUrl' as never));
    proxy = await startCommitProxy(place.url);
    db = await openDatabase(proxy.url, { clock });
    await migrateJobs(db);
    await db.query('create table effects (what text not null)');
    useJobs(db, { jobs: [committed, stepped] });
  });
  afterAll(async () => {
    unbindJobs(db);
    await db.close();
    await proxy.close();
    await place.remove();
  });

  for (const definition of [committed, stepped])
    for (const when of ['before', 'after'] as const)
      test(`${definition.name}: lost ${when} the server has committed, its effects are there exactly once`, async () => {
        const what = `${definition.name} ${when}`;
        const { id } = await db.transaction((tx) => startJob(tx, definition, { what }));
        const cuts = proxy.cuts;
        cut = when;
        await runDueJobs(db);
        cut = undefined;
        expect(proxy.cuts - cuts).toBe(1);
        // What was committed is found again, and the attempt goes on; what was not is tried again.
        expect(await findJob(db, id)).toMatchObject(
          when === 'after' ? { status: 'succeeded', attempts: 1 } : { status: 'queued', attempts: 1 },
        );
        clock.advance(60_000);
        await runDueJobs(db);
        expect(await findJob(db, id)).toMatchObject({ status: 'succeeded', attempts: when === 'after' ? 1 : 2 });
        expect(await db.query('select what from effects where what = $1', [what])).toHaveLength(1);
      });

  test('lost after the server has claimed a job: the job runs with the next claim, and has all its attempts', async () => {
    // The text of a statement is sent each time.
    const unprepared = await openDatabase(proxy.url, { clock, prepare: false });
    onTestFinished(() => unprepared.close());
    useJobs(unprepared, { jobs: [once] });
    onTestFinished(() => unbindJobs(unprepared));
    const { id } = await unprepared.transaction((tx) => startJob(tx, once, { what: 'claimed' }));
    const cuts = proxy.cuts;
    proxy.cutNext('after', 'with recursive level');
    const worker = await startJobWorker(unprepared);
    onTestFinished(() => worker.stop());
    await vi.waitUntil(async () => (await findJob(db, id))?.status === 'succeeded', { timeout: 50_000, interval: 20 });
    expect(proxy.cuts - cuts).toBe(1);
    expect(await findJob(db, id)).toMatchObject({ attempts: 1, attempts_max: 1 });
  });
});
