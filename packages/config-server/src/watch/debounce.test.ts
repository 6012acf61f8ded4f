import { expect, test } from 'vitest';
import type { Clock } from '../clock.ts';
import { Debounce } from './debounce.ts';

/** Time that moves when the test says so. */
class HandClock implements Clock {
  time = 0;
  #timers: { at: number; run: () => void }[] = [];

  now(): number {
    return this.time;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.time + ms, run };
    this.#timers.push(timer);
    return () => void (this.#timers = this.#timers.filter((other) => other !== timer));
  }

  /** Timers go on as they would: only the time of day is another one. */
  setBack(ms: number): void {
    this.time -= ms;
    for (const timer of this.#timers) timer.at -= ms;
  }

  advance(to: number): void {
    for (;;) {
      const next = this.#timers.filter((timer) => timer.at <= to).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.time = next.at;
      next.run();
    }
    this.time = to;
  }
}

function debounced(): { clock: HandClock; debounce: Debounce; runs: [number, number][] } {
  const clock = new HandClock();
  const runs: [number, number][] = [];
  return { clock, runs, debounce: new Debounce(100, clock, (since) => runs.push([clock.time, since])) };
}

test('it runs once, when it has been quiet for the whole period', () => {
  const { clock, debounce, runs } = debounced();
  for (const time of [0, 30, 60, 90]) {
    clock.advance(time);
    debounce.touch();
  }
  clock.advance(189);
  expect(runs).toEqual([]);
  clock.advance(1000);
  expect(runs).toEqual([[190, 0]]);
});

test('under a storm it runs at four times the period', () => {
  const { clock, debounce, runs } = debounced();
  for (let time = 0; time <= 1000; time += 10) {
    clock.advance(time);
    debounce.touch();
  }
  expect(runs.map(([at]) => at)).toEqual([400, 800]);
});

test('a touch after a run starts a new period', () => {
  const { clock, debounce, runs } = debounced();
  debounce.touch();
  clock.advance(100);
  clock.advance(500);
  debounce.touch();
  clock.advance(600);
  expect(runs).toEqual([
    [100, 0],
    [600, 500],
  ]);
});

test('a clock that is set back does not put the run off', () => {
  const { clock, debounce, runs } = debounced();
  clock.advance(5_000_000);
  debounce.touch();
  clock.setBack(4_000_000);
  clock.advance(1_000_150);
  expect(runs).toHaveLength(1);
});

test('a cancelled run does not happen', () => {
  const { clock, debounce, runs } = debounced();
  debounce.touch();
  debounce.cancel();
  clock.advance(1000);
  expect(runs).toEqual([]);
});
