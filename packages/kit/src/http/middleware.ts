import type { QueryEvent } from '../db/query-observer.ts';
import type { CompiledRoute } from './compiled-route.ts';
import type { Exchange } from './exchange.ts';

type Maybe<T> = T | Promise<T>;

/** `admission`: up to the permission. `handling`: input, handler, answer. `finish`: after the answer. */
export type RequestPart = 'admission' | 'handling' | 'finish';

/**
 * Work around every request of the app or of one version mount, in the order given. Each hook is optional:
 *
 * onRequest   before throttles and authentication; throwing refuses the request
 * handle      after permission and validation, around the handler: call `next()` for its value, or answer without it
 * onResponse  just before the headers leave, on every answer including errors and 404s: set headers with `exchange.reply.header`
 * onFinish    after the answer left, or the connection died
 * within      around each part of the request, for what lives in the async context: call `work` once and return its result
 * onQuery     after every statement the request ran, from authentication on; throwing makes the statement fail. With it, statements are timed
 *
 * App-level middleware also sees requests that match no route (`exchange.route` is null).
 */
export interface Middleware {
  readonly name: string;
  /** Asked once per route at start-up; the hooks cost nothing on routes it declines. Everything unless said. */
  appliesTo?(route: CompiledRoute): boolean;
  onRequest?(exchange: Exchange): Maybe<void>;
  handle?(exchange: Exchange, next: () => Promise<unknown>): Promise<unknown>;
  onResponse?(exchange: Exchange): void;
  onFinish?(exchange: Exchange): void;
  within?<R>(exchange: Exchange, part: RequestPart, work: () => R): R;
  onQuery?(exchange: Exchange, query: QueryEvent): void;
}
