import { AsyncLocalStorage } from 'node:async_hooks';
import type { Dialect } from '../dialect.ts';

/** One statement that ran. Values are counted, never shown: they may be secrets. */
export interface QueryEvent {
  readonly using: string;
  readonly dialect: Dialect;
  readonly sql: string;
  readonly parameterCount: number;
  readonly rowCount: number;
  readonly durationMs: number;
  readonly failed: boolean;
  /** What kind of failure: a code such as `23505`, or the name of the error's class. */
  readonly errorType: string | undefined;
}

export type QueryObserver = (event: QueryEvent) => void;

interface Observation {
  readonly observer: QueryObserver;
  readonly outer: Observation | undefined;
}

const observations = new AsyncLocalStorage<Observation>();

/** Calls `observer` for every statement that `work` runs, on any database, also in what it awaits. */
export function observeQueries<R>(observer: QueryObserver, work: () => R): R {
  return observations.run({ observer, outer: observations.getStore() }, work);
}

export interface CountedQueries<R> {
  readonly result: R;
  readonly count: number;
  readonly queries: readonly QueryEvent[];
}

/** Runs `work` and says which statements it needed: the way to test that a page costs two queries, not fifty-one. */
export async function countQueries<R>(work: () => Promise<R>): Promise<CountedQueries<R>> {
  const queries: QueryEvent[] = [];
  const result = await observeQueries((event) => queries.push(event), work);
  return { result, count: queries.length, queries };
}

/** Whether anybody wants to hear about a statement that runs now: asked first, because measuring has a price. */
export function isObserved(): boolean {
  return observations.getStore() !== undefined;
}

export function reportQuery(event: QueryEvent): void {
  for (let each = observations.getStore(); each !== undefined; each = each.outer) each.observer(event);
}
