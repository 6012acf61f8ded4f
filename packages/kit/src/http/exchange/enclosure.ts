import { observeQueries } from '../../db/engine/query-observer.ts';
import type { Exchange } from './exchange.ts';
import type { Middleware, RequestPart } from './middleware.ts';

/** Runs one part of a request inside what the middleware put around it. */
export type Enclosure = <R>(exchange: Exchange, part: RequestPart, work: () => R) => R;

/** Undefined when no middleware needs an async context or asks about statements: then nothing is paid. */
export function enclosureOf(middleware: readonly Middleware[]): Enclosure | undefined {
  const watching = middleware.filter((each) => each.onQuery !== undefined);
  let enclosure: Enclosure | undefined = watching.length === 0 ? undefined : (exchange, _part, work) => watched(exchange, watching, work);
  for (const each of middleware.toReversed()) {
    if (each.within === undefined) continue;
    const inner = enclosure;
    enclosure =
      inner === undefined
        ? (exchange, part, work) => each.within!(exchange, part, work)
        : (exchange, part, work) => each.within!(exchange, part, () => inner(exchange, part, work));
  }
  return enclosure;
}

function watched<R>(exchange: Exchange, middleware: readonly Middleware[], work: () => R): R {
  return observeQueries((query) => {
    exchange.queryCount += 1;
    exchange.queryMs += query.durationMs;
    for (const each of middleware) each.onQuery?.(exchange, query);
  }, work);
}
