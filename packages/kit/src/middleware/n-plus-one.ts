import type { QueryEvent } from '../db/engine/query-observer.ts';
import type { Exchange } from '../http/exchange/exchange.ts';
import type { Middleware } from '../http/exchange/middleware.ts';
import { readOptions, type OptionRules } from '../options/read-options.ts';
import { oneOf, wholeNumber } from '../options/value-rule.ts';

export interface NPlusOneOptions {
  /** `warn` (default) writes to the log, `throw` fails the request (for tests), `off` does nothing. */
  readonly mode?: 'warn' | 'throw' | 'off';
  /** How often one statement may run in a request before it is reported. Default: 5. */
  readonly threshold?: number;
}

/** So often one statement may run in a request. */
export const REPEATS_MAX = 5;

const rules: OptionRules<NPlusOneOptions> = { mode: oneOf('warn', 'throw', 'off'), threshold: wholeNumber(2) };

/**
 * Finds a statement that one request runs again and again, such as one per row of a list, and says where and what to do about it. Generic CRUD
 * writes the rows of bulk operations, imports and nested writes one by one where each has values of its own: one statement for each row that
 * was sent is not counted.
 */
export function nPlusOne(options: NPlusOneOptions = {}): Middleware {
  const { mode = 'warn', threshold = REPEATS_MAX } = readOptions('nPlusOne()', options, rules);
  const name = 'n_plus_one';
  if (mode === 'off') return { name, appliesTo: () => false };
  return { name, onQuery: repeatsFrom(threshold, (exchange, query, count) => report(exchange, query, count, mode)) };
}

/** Calls `found` once for each statement that a request has run `threshold` times. */
export function repeatsFrom(
  threshold: number,
  found: (exchange: Exchange, query: QueryEvent, count: number) => void,
): NonNullable<Middleware['onQuery']> {
  const counts = new WeakMap<Exchange, Map<string, number>>();
  const reported = new WeakMap<Exchange, Set<string>>();
  return (exchange, query) => {
    const texts = counts.get(exchange) ?? new Map<string, number>();
    counts.set(exchange, texts);
    const count = (texts.get(query.sql) ?? 0) + 1;
    texts.set(query.sql, count);
    if (count < threshold + exchange.itemCount) return;
    const known = reported.get(exchange) ?? new Set<string>();
    reported.set(exchange, known);
    if (known.has(query.sql)) return;
    known.add(query.sql);
    found(exchange, query, count);
  };
}

function report(exchange: Exchange, { sql }: QueryEvent, count: number, mode: string): void {
  const { route } = exchange;
  const where = route === null ? 'A request without a route' : `${route.controller}.${route.field} (${route.method} ${route.path})`;
  const table = tableOf(sql);
  const on = table === undefined ? '' : ` on "${table}"`;
  const message = `${where} ran the same statement${on} ${count} times in one request. Load the rows together: \`expand\` or \`requires\` of a resource, or one statement for all \`rows\`.`;
  exchange.log[mode === 'throw' ? 'error' : 'warn']({ operation: route?.operationId, table, count }, message);
  if (mode === 'throw') throw new Error(message);
}

/** The first table a statement names. */
export function tableOf(sql: string): string | undefined {
  return /\b(?:from|into|update)\s+(?:only\s+)?(?:"?\w+"?\.)?"?(\w+)"?/i.exec(sql)?.[1];
}
