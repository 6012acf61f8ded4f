import type { Clock } from '../db/clock.ts';

/** A clock that stands still until a test moves it. */
export interface FakeClock extends Clock {
  set(instant: Date | string): void;
  advance(ms: number): void;
}

/** Time is a parameter everywhere in the toolkit: pass this as `clock` and no test has to sleep. */
export function fakeClock(start: Date | string = '2026-01-01T00:00:00.000Z'): FakeClock {
  let now = parse(start);
  return {
    // A copy: a caller that changes the date it was given must not change the time.
    now: () => new Date(now),
    set(instant) {
      now = parse(instant);
    },
    advance(ms) {
      if (!Number.isFinite(ms)) throw new TypeError(`advance() takes milliseconds, got ${ms}.`);
      now += ms;
    },
  };
}

function parse(instant: Date | string): number {
  const ms = new Date(instant).getTime();
  if (Number.isNaN(ms)) throw new TypeError(`${JSON.stringify(instant)} is not a date; write one such as '2026-01-31T12:00:00Z'.`);
  return ms;
}
