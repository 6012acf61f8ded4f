// From their modules, not the globals, which tests replace to move time by hand: a refused key would never be answered there.
import { performance } from 'node:perf_hooks';
import { setImmediate, setTimeout } from 'node:timers';

/** Answers to bad keys leave on a beat of this many milliseconds: none before one whole beat, the latest after two. */
export const BEAT_MS = 20;
/** A timer may come this much later than asked: it counts whole milliseconds, and starts to count when the work before it is done. */
const TIMER_SLACK_MS = 2;

const beats = new Map<number, Promise<void>>();

/** What `beatAfter` takes for "started at". */
export function beatClock(): number {
  return performance.now();
}

/**
 * Resolves on the beat that belongs to this moment of `beatClock()`, whatever was done since. A timer alone would not do: it runs
 * from the end of the work before it, so the microseconds by which one refusal takes longer than another would show in the answer. Everybody
 * who waits for a beat waits together, so refusing keys keeps a process awake for at most a tenth of the time, however many come.
 */
export function beatAfter(startedAt: number): Promise<void> {
  const now = performance.now();
  const number = Math.max(Math.floor(startedAt / BEAT_MS) + 2, Math.floor(now / BEAT_MS) + 1);
  const kept = beats.get(number);
  if (kept !== undefined) return kept;
  const atMs = number * BEAT_MS;
  const beat = new Promise<void>((resolve) => {
    const look = (): void => {
      if (performance.now() < atMs) return void setImmediate(look);
      beats.delete(number);
      resolve();
    };
    setTimeout(look, Math.max(0, Math.floor(atMs - now - TIMER_SLACK_MS)));
  });
  beats.set(number, beat);
  return beat;
}
