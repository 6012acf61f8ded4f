import type { Middleware } from '../../http/exchange/middleware.ts';
import type { AdminStatePart } from '../wire/wire.ts';

const WINDOW_MS = 60_000;
/** Requests that are remembered: with more in a minute, the last ones speak for it. */
const KEPT = 1_024;
/** Fewer say nothing about the rest. */
const ENOUGH = 20;
const SLOW_MS = 1_000;

/** How long this process took for the requests of the last minute, until their headers left. */
export class ResponseTimes {
  /** Two numbers for each request: when it was answered, and how long it took. */
  readonly #kept = new Float64Array(KEPT * 2);
  readonly #now: () => number;
  #next = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  get middleware(): Middleware {
    return { name: 'admin_response_times', onResponse: ({ startedAt }) => this.note(this.#now() - startedAt) };
  }

  note(ms: number): void {
    const at = (this.#next % KEPT) * 2;
    this.#kept[at] = this.#now();
    this.#kept[at + 1] = ms;
    this.#next += 1;
  }

  /** What 95 of 100 requests did not exceed; null: there were too few. */
  p95(): number | null {
    const since = this.#now() - WINDOW_MS;
    const taken: number[] = [];
    for (let at = 0; at < Math.min(this.#next, KEPT) * 2; at += 2) if ((this.#kept[at] ?? 0) > since) taken.push(this.#kept[at + 1] ?? 0);
    if (taken.length < ENOUGH) return null;
    return taken.toSorted((a, b) => a - b)[Math.ceil(taken.length * 0.95) - 1] ?? null;
  }

  get part(): AdminStatePart {
    const p95 = this.p95();
    if (p95 === null) return { name: 'Speed', tone: 'good', text: 'Too few requests in the last minute to tell.' };
    const took = p95 < 1_000 ? `${Math.round(p95)} ms` : `${(p95 / 1_000).toFixed(1)} s`;
    if (p95 < SLOW_MS) return { name: 'Speed', tone: 'good', text: `95 of 100 requests of the last minute took ${took} or less.` };
    return { name: 'Slow', tone: 'warning', text: `in the last minute, 5 of 100 requests took ${took} or longer.` };
  }
}
