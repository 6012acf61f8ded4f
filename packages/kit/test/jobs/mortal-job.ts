import { z } from 'zod';
import { job, type JobDefinition } from '../../src/contrib/jobs/declare/job.ts';
import type { Db } from '../../src/db/index.ts';

/** Moments in the life of a job at which its process is killed, in their order. */
export const MOMENTS = [
  'claimed',
  'running',
  'in-step',
  'step-recorded',
  'in-step-commit',
  'step-committed',
  'in-commit',
  'fenced',
  'committed',
  'result-stored',
  'retry-written',
  'retry-stored',
  'cancel-written',
  'cancelled',
  'stopping',
  'given-back',
] as const;
export type Moment = (typeof MOMENTS)[number];
/** Moments of a process that starts a recurring job. */
export const TICK_MOMENTS = ['tick-moved', 'tick-started'] as const;
export type TickMoment = (typeof TICK_MOMENTS)[number];

const FAILS: ReadonlySet<Moment> = new Set(['retry-written', 'retry-stored']);
const WAITS: ReadonlySet<Moment> = new Set(['cancel-written', 'cancelled', 'stopping', 'given-back']);

/** What the process around a job does to it. */
export interface Around {
  /** Called at every moment inside the handler. */
  readonly at: (moment: Moment) => void;
  /** A job that waits has begun. */
  readonly waiting: (id: string) => void;
}

const NOTHING: Around = { at: () => undefined, waiting: () => undefined };

export function createEffects(db: Db): Promise<unknown> {
  return db.query('create table effects (job_id text not null, kind text not null)');
}

async function effect(db: Db, id: string, kind: string): Promise<void> {
  await db.query('insert into effects (job_id, kind) values ($1, $2)', [id, kind]);
}

/** One job that goes through every moment, on a queue of its own: a plain step, a committed step, and effects together with its success. */
export function mortalJob(moment: Moment, around: Around = NOTHING): JobDefinition<object> {
  const { at, waiting } = around;
  const isMortal = around !== NOTHING;
  return job(`mortal.${moment}`, {
    input: z.object({}),
    queue: moment,
    retry: { attempts: 5, backoff: 'fixed', firstDelaySeconds: 1 },
    async run({ id, db, step, commit, signal }) {
      at('running');
      await step('render', async () => {
        await effect(db, id, 'render');
        at('in-step');
      });
      at('step-recorded');
      await step.commit('book', async (tx) => {
        await effect(tx, id, 'step');
        at('in-step-commit');
      });
      at('step-committed');
      if (isMortal && FAILS.has(moment)) throw new Error('the attempt fails');
      if (isMortal && WAITS.has(moment)) {
        waiting(id);
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        at('stopping');
        signal.throwIfAborted();
      }
      // Stored by the worker, not by the handler.
      if (moment === 'result-stored') return;
      await commit(async (tx) => {
        await effect(tx, id, 'commit');
        at('in-commit');
      });
      at('committed');
    },
  });
}

export const RECURRING_SINCE = '2026-03-01T12:00:00.000Z';
export const RECURRING_TICK = '2026-03-02T03:00:01.000Z';

/** A job that is due once between the two times above. */
export function recurringJob(moment: TickMoment): JobDefinition<object> {
  return job(`recurring.${moment}`, {
    input: z.object({}),
    queue: moment,
    schedule: { cron: '0 3 * * *', input: {} },
    run: ({ id, commit }) => commit((tx) => effect(tx, id, 'commit')),
  });
}
