// When a recurring job is due. Pure: the cron expression is read by croner, time is passed in.
import { Cron } from 'croner';
import { objectOf, type OptionRules } from '../../../options/read-options.ts';
import { anything, filledText, oneOf, parsedBy, required, rule, type ValueRule } from '../../../options/value-rule.ts';

export interface ScheduleOptions<Input = unknown> {
  /** Five fields, or six with seconds first: `0 3 * * *`. */
  readonly cron: string;
  /** An IANA name. Default: UTC. */
  readonly timeZone?: string;
  /** Ticks that came while no worker ran: `skip` starts none, `once` starts one job for all of them. Default: `skip`. */
  readonly missed?: 'skip' | 'once';
  /** The input of every job that the schedule starts. */
  readonly input: Input;
}

export interface Schedule {
  /** Five fields: minute, hour, day of the month, month, day of the week. */
  readonly cron: string;
  /** The zone that the fields are in: `Europe/Vienna`. */
  readonly timeZone: string;
  /** `once` runs a missed tick when a worker is back; `skip` waits for the next one. */
  readonly missed: 'skip' | 'once';
  /** The input of each run. */
  readonly input: unknown;
  /** What its ticks depend on, to tell a changed schedule from the same one. */
  readonly text: string;
  /** The first tick after an instant; null when there is none. */
  nextTick(after: Date): Date | null;
}

/** A tick that is started later than this was missed: a deploy or a busy worker takes less. */
export const ON_TIME_MS = 5 * 60_000;

const parts: OptionRules<ScheduleOptions> = {
  cron: required(filledText),
  timeZone: rule('an IANA name, such as "Europe/Berlin"', isTimeZone),
  missed: oneOf('skip', 'once'),
  input: anything,
};

/** Also reads the cron expression, once everything else is valid. */
export const scheduleRule: ValueRule = (value, place, name) => {
  const faults = objectOf<ScheduleOptions>(parts)(value, place, name);
  return faults.length > 0 ? faults : parsedBy<ScheduleOptions>(parseSchedule)(value, place, `${name}.cron`);
};

export function parseSchedule({ cron: pattern, timeZone = 'UTC', missed = 'skip', input }: ScheduleOptions): Schedule {
  let cron: Cron;
  try {
    cron = new Cron(pattern, { timezone: timeZone, paused: true, mode: '5-or-6-parts' });
  } catch (error) {
    throw new TypeError(`${JSON.stringify(pattern)} is not a cron expression: ${(error as Error).message}`, { cause: error });
  }
  const text = `${pattern.trim().replaceAll(/\s+/g, ' ')} ${timeZone}`;
  return Object.freeze({ cron: pattern, timeZone, missed, input, text, nextTick: (after: Date) => cron.nextRun(after) });
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
  const first = schedule.nextTick(lastTick);
  if (first === null || first > now) return null;
  const tick = lastTickUntil(schedule, first, now);
  const isLate = now.getTime() - tick.getTime() > ON_TIME_MS;
  return { tick, starts: schedule.missed === 'once' || !isLate };
}

/**
 * The last tick up to now, from one that is known: by halving the time between, so that years without a worker take as many questions as an
 * hour. Passing over ticks one by one would stop somewhere, and what follows would start again.
 */
function lastTickUntil(schedule: Schedule, known: Date, now: Date): Date {
  let tick = known;
  // No tick comes after `until` up to now.
  for (let until = now.getTime(); until > tick.getTime();) {
    const middle = Math.floor((tick.getTime() + until) / 2);
    const next = schedule.nextTick(new Date(middle));
    if (next === null || next > now) until = middle;
    else tick = next;
  }
  return tick;
}

function isTimeZone(name: unknown): name is string {
  if (typeof name !== 'string') return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
