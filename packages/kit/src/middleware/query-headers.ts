import type { Middleware } from '../http/exchange/middleware.ts';
import { readOptions, type OptionRules } from '../options/read-options.ts';
import { flag } from '../options/value-rule.ts';
import { isDevelopment } from './config.ts';

export interface QueryHeadersOptions {
  /** Sends the headers in production too, where they tell strangers how a request is answered. */
  readonly force?: boolean;
}

const rules: OptionRules<QueryHeadersOptions> = { force: flag };

/**
 * For developers: `X-Query-Count`, `X-Query-Time` (ms) and `X-Query-Plan` of everything a request asked the databases, from authentication
 * until the headers leave. Never SQL, never values. Nothing is sent or measured unless NODE_ENV is `development` or `test`, or `force` is set.
 */
export function queryHeaders(options: QueryHeadersOptions = {}): Middleware {
  const name = 'query_headers';
  const { force = false } = readOptions('queryHeaders()', options, rules);
  if (!force && !isDevelopment()) return { name, appliesTo: () => false };
  return {
    name,
    // The exchange counts as soon as some middleware listens.
    onQuery: () => undefined,
    onResponse({ reply, queryCount, queryMs, queryPlan }) {
      reply.header('x-query-count', String(queryCount));
      reply.header('x-query-time', queryMs.toFixed(1));
      if (queryPlan.length > 0) reply.header('x-query-plan', headerText(queryPlan.join('; ')));
    },
  };
}

const PLAN_LENGTH_MAX = 1000;

/** Visible ASCII only: anything else could not be sent. */
function headerText(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]+/g, '?').slice(0, PLAN_LENGTH_MAX);
}
