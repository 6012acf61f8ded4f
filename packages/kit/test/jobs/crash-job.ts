import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { job } from '../../src/contrib/jobs/declare/job.ts';

/** Writes one row in a recorded step and one with its success; fails now and then in between. */
export const crashJob = job('crash', {
  input: z.object({ n: z.int() }),
  concurrency: 8,
  retry: { attempts: 1000, backoff: 'fixed', firstDelaySeconds: 0.05 },
  async run({ id, step, commit }) {
    await step.commit('book', async (tx) => void (await tx.query(`insert into effects (job_id, kind) values ($1, 'step')`, [id])));
    await pause(Math.random() * 30);
    if (Math.random() < 0.1) throw new Error('now and then');
    await commit(async (tx) => void (await tx.query(`insert into effects (job_id, kind) values ($1, 'commit')`, [id])));
  },
});

/** Short, so that the jobs of a killed worker run again soon. */
export const CRASH_LEASE_MS = 2000;
