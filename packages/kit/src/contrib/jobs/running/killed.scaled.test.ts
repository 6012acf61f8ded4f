import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { scaled } from '../../../../../../test/provision/scale.ts';
import { describeJobs } from '../../../../test/jobs/describe-jobs.ts';
import {
  createEffects,
  MOMENTS,
  mortalJob,
  RECURRING_SINCE,
  RECURRING_TICK,
  recurringJob,
  TICK_MOMENTS,
  type Moment,
} from '../../../../test/jobs/mortal-job.ts';
import { runSchedules } from './run-schedules.ts';

const SCRIPT = fileURLToPath(new URL('../../../../test/jobs/mortal-process.ts', import.meta.url));
/** Processes that work, and die, at the same time. */
const AT_ONCE = 4;
/** Every moment is a process: `npm test` tries the ones between two writes. */
const moments = MOMENTS.filter((moment) => scaled(0, 1) === 1 || ['claimed', 'in-step-commit', 'fenced', 'given-back'].includes(moment));
const tickMoments = TICK_MOMENTS.filter((moment) => scaled(0, 1) === 1 || moment === 'tick-moved');
const mortal = new Map(moments.map((moment) => [moment, mortalJob(moment)]));

interface Outcome {
  readonly status?: 'succeeded' | 'cancelled';
  /** On PostgreSQL and on SQLite, where a claim and a failed attempt are transactions of several statements. */
  readonly attempts: readonly [postgres: number, sqlite: number];
  /** How often the work of the plain step was done: it is at least once. */
  readonly renders?: number;
}

// What became of the job once another worker had finished what the killed one left.
const OUTCOMES: Readonly<Record<Moment, Outcome>> = {
  claimed: { attempts: [2, 1] },
  running: { attempts: [2, 2] },
  'in-step': { attempts: [2, 2], renders: 2 },
  'step-recorded': { attempts: [2, 2] },
  'in-step-commit': { attempts: [2, 2] },
  'step-committed': { attempts: [2, 2] },
  'in-commit': { attempts: [2, 2] },
  fenced: { attempts: [2, 2] },
  committed: { attempts: [1, 1] },
  'result-stored': { attempts: [1, 1] },
  'retry-written': { attempts: [2, 2] },
  'retry-stored': { attempts: [2, 2] },
  'cancel-written': { attempts: [2, 2] },
  cancelled: { status: 'cancelled', attempts: [1, 1] },
  stopping: { attempts: [2, 2] },
  'given-back': { attempts: [1, 1] },
};

describeJobs('a worker that is killed', { jobs: [...mortal.values(), ...tickMoments.map(recurringJob)] }, (bench) => {
  /** The signal that ended a process, or what it said before it ended by itself. */
  const ended = new Map<string, string>();
  const rows = new Map<string, { readonly status: string; readonly attempts: number; readonly kinds: readonly string[] }>();
  let ticks: readonly string[] = [];

  const endOf = async (moment: string): Promise<string> => {
    const child = spawn(process.execPath, ['--conditions=source', SCRIPT, bench.database.url, moment], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.on('data', (text: Buffer) => (said += text.toString()));
    const [, signal] = (await once(child, 'close')) as [number | null, string | null];
    return signal ?? said;
  };

  // Several at once, then one worker finishes what they left: the tests look at the result.
  beforeAll(async () => {
    bench.clock.set(RECURRING_TICK);
    await createEffects(bench.db);
    for (const moment of tickMoments)
      await bench.db.query('insert into job_schedules (name, last_tick) values ($1, $2)', [
        `recurring.${moment}`,
        new Date(RECURRING_SINCE),
      ]);
    const ids = new Map<string, string>();
    for (const [moment, definition] of mortal) ids.set(moment, (await bench.start(definition, {})).id);
    const waiting: string[] = [...moments, ...tickMoments];
    const work = async (): Promise<void> => {
      for (let moment = waiting.shift(); moment !== undefined; moment = waiting.shift()) ended.set(moment, await endOf(moment));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    await bench.expireLeases();
    for (let n = 0; n < 3; n++) {
      await bench.run();
      bench.clock.advance(60_000);
    }
    for (const [moment, id] of ids) {
      const { status, attempts } = await bench.read(id);
      const effects = await bench.db.query<{ kind: string }>('select kind from effects where job_id = $1 order by kind', [id]);
      rows.set(moment, { status, attempts, kinds: effects.map(({ kind }) => kind) });
    }
    await runSchedules(bench.jobs);
    const started = await bench.db.query<{ name: string; status: string }>(
      `select name, status from jobs where name like 'recurring.%' order by name`,
    );
    ticks = started.map(({ name, status }) => `${name} ${status}`);
  });

  test.each(moments)('at the moment "%s": its job ends, and each of its committed effects is there exactly once', (moment) => {
    expect(ended.get(moment)).toBe('SIGKILL');
    const { status = 'succeeded', attempts, renders = 1 } = OUTCOMES[moment];
    const [postgres, sqlite] = attempts;
    const commits = status === 'cancelled' || moment === 'result-stored' ? [] : ['commit'];
    expect(rows.get(moment)).toEqual({
      status,
      attempts: bench.database.dialect === 'postgres' ? postgres : sqlite,
      kinds: [...commits, ...Array.from({ length: renders }, () => 'render'), 'step'],
    });
  });

  test.each(tickMoments)('at the moment "%s": the tick of a recurring job has exactly one job', (moment) => {
    expect(ended.get(moment)).toBe('SIGKILL');
    expect(ticks.filter((line) => line.startsWith(`recurring.${moment} `))).toEqual([`recurring.${moment} succeeded`]);
  });
});
