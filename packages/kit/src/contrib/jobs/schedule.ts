// When a recurring job is due. Pure: the cron expression is read by croner, time is passed in.
import { Cron } from 'croner';

export interface ScheduleOptions<Input = unknown> {
  /** Five fields, or six with seconds first: `0 3 * * *`. */
  readonly cron: string;
  /** An IANA name; UTC unless given. */
  readonly timeZone?: string;
  /** What becomes of ticks that came while no worker ran: none is started, or one for all of them. `skip` unless given. */
  readonly missed?: 'skip' | 'once';
  readonly input: Input;
}

export interface Schedule {
  readonly cron: string;
  readonly timeZone: string;
  readonly missed: 'skip' | 'once';
  readonly input: unknown;
  /** The first tick after an instant; null when there is none. */
  nextTick(after: Date): Date | null;
}

/** A tick that is started later than this was missed: a deploy or a busy worker takes less. */
export const ON_TIME_MS = 5 * 60_000;
/** Ticks passed over one by one, at most; beyond, the count begins again near the present. */
const PASSED_MAX = 1000;

export function parseSchedule(options: ScheduleOptions): Schedule {
  const { cron: pattern, timeZone = 'UTC', missed = 'skip', input } = options;
  if (typeof pattern !== 'string') throw new TypeError('schedule.cron must be a text such as "0 3 * * *"');
  if (missed !== 'skip' && missed !== 'once') throw new TypeError('schedule.missed must be "skip" or "once"');
  if (!isTimeZone(timeZone)) throw new TypeError(`schedule.timeZone is ${JSON.stringify(timeZone)}; use a name such as "Europe/Berlin"`);
  let cron: Cron;
  try {
    cron = new Cron(pattern, { timezone: timeZone, paused: true, mode: '5-or-6-parts' });
  } catch (error) {
    throw new TypeError(`schedule.cron ${JSON.stringify(pattern)} cannot be read: ${(error as Error).message}`, { cause: error });
  }
  return Object.freeze({ cron: pattern, timeZone, missed, input, nextTick: (after: Date) => cron.nextRun(after) });
}

/** What to do now, after the last tick that was dealt with. */
export interface TickDecision {
  /** The last tick up to now; it is dealt with by whatever follows. */
  readonly tick: Date;
  /** Whether a job is started for it. */
  readonly starts: boolean;
}

/** Null: nothing is due. Of several ticks that have passed, only the last one may be started. */
export function decideTick(schedule: Schedule, lastTick: Date, now: Date): TickDecision | null {
  let tick = schedule.nextTick(lastTick);
  if (tick === null || tick > now) return null;
  for (let passed = 0; ; passed++) {
    // Months without a worker: from an hour ago on is enough to find the last tick, or none.
    const from = passed < PASSED_MAX ? tick : new Date(Math.max(tick.getTime(), now.getTime() - 3_600_000));
    const next = schedule.nextTick(from);
    if (next === null || next > now) break;
    tick = next;
  }
  const isLate = now.getTime() - tick.getTime() > ON_TIME_MS;
  return { tick, starts: schedule.missed === 'once' || !isLate };
}

function isTimeZone(name: unknown): name is string {
  if (typeof name !== 'string') return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
