// From their modules, not the globals, which tests replace to move time by hand: a refused key would never be answered there.
import { performance } from 'node:perf_hooks';
import { setImmediate, setTimeout } from 'node:timers';

/** Responses to bad keys are sent on a tick of this many milliseconds: not before one whole tick, at the latest after two. */
export const TICK_MS = 20;
/** A timer may come this much later than asked: it counts whole milliseconds, and starts to count when the work before it is done. */
const TIMER_SLACK_MS = 2;

const ticks = new Map<number, Promise<void>>();

/** What `waitForRefusalTick` takes for "started at". */
export function refusalClock(): number {
  return performance.now();
}

/**
 * Resolves on the tick that belongs to this moment of `refusalClock()`, whatever was done since. A timer alone is not enough: it runs from the
 * end of the work before it, so the microseconds by which one refusal takes longer than another would show in the response. All requests that
 * wait for a tick share one timer, so refusing keys keeps a process awake for at most a tenth of the time, however many requests come.
 */
export function waitForRefusalTick(startedAt: number): Promise<void> {
  const now = performance.now();
  const number = Math.max(Math.floor(startedAt / TICK_MS) + 2, Math.floor(now / TICK_MS) + 1);
  const kept = ticks.get(number);
  if (kept !== undefined) return kept;
  const atMs = number * TICK_MS;
  const tick = new Promise<void>((resolve) => {
    const look = (): void => {
      if (performance.now() < atMs) return void setImmediate(look);
      ticks.delete(number);
      resolve();
    };
    setTimeout(look, Math.max(0, Math.floor(atMs - now - TIMER_SLACK_MS)));
  });
  ticks.set(number, tick);
  return tick;
}
