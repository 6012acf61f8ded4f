import type { ServerResponse } from 'node:http';
import { withoutKeys } from '../auth/people/without-keys.ts';
import type { Exchange } from '../http/exchange/exchange.ts';
import type { Middleware } from '../http/exchange/middleware.ts';
import { declaredQueryNames, maskedPath } from './masking.ts';
import { ownRecord } from '../observe/own-record.ts';
import { readOptions } from '../options/read-options.ts';
import { listOf, oneOf, text } from '../options/value-rule.ts';

export interface RequestLogOptions {
  /** `flat` (default): short names. `otel`: the names of OpenTelemetry's semantic conventions. */
  readonly names?: 'flat' | 'otel';
  /** Routes whose successful requests are written at `debug`: probes that come every second. */
  readonly quiet?: readonly string[];
}

/** A longer path or user agent is cut: it is the client's text and would be stored as often as the client likes. */
const TEXT_MAX = 256;

interface RequestRecord {
  readonly method: string;
  readonly route: string | null;
  readonly path: string;
  readonly query: readonly string[] | undefined;
  readonly status: number;
  readonly duration_ms: number;
  readonly client_address: string;
  readonly user_agent: string | undefined;
  readonly user_id: string | undefined;
  readonly scheme: string | undefined;
  readonly credential_id: string | undefined;
  /** Once the request's tenant was asked for. */
  readonly tenant: string | undefined;
  /** Statements on any database, authentication's included. */
  readonly query_count: number;
  readonly code: string | undefined;
  /** The connection died before the answer was complete. */
  readonly aborted: true | undefined;
}

/** An injected request (app.inject) has no socket its answer could finish on. */
const isComplete = (raw: ServerResponse): boolean => raw.writableFinished || 'isLightMyRequest' in raw;

/** The client's own words, but no key that was put there by mistake. */
const shown = (text: string): string => {
  const safe = withoutKeys(text);
  return safe.length > TEXT_MAX ? `${safe.slice(0, TEXT_MAX)}…` : safe;
};

/** Everything known of a request except what it carried: no body, no header values but the user agent, no query values. */
function recordOf(exchange: Exchange): RequestRecord {
  const { route, url, reply, principal } = exchange;
  const queryStart = url.indexOf('?');
  const path = queryStart < 0 ? url : url.slice(0, queryStart);
  const names = declaredQueryNames(url, route?.query);
  const agent = exchange.headers['user-agent'];
  return {
    method: exchange.method,
    route: route?.path ?? null,
    // The pattern as the server matched it: inside a foreign server it starts with the prefix, which the app's own does not have.
    path: shown(route === null ? path : maskedPath(path, exchange.request.routeOptions.url ?? route.path, route.params)),
    query: names.length > 0 ? names : undefined,
    status: reply.statusCode,
    duration_ms: Math.round((performance.now() - exchange.startedAt) * 100) / 100,
    client_address: exchange.clientAddress,
    user_agent: typeof agent === 'string' ? shown(agent) : undefined,
    user_id: principal?.user.id,
    scheme: principal?.scheme,
    credential_id: principal?.credentialId,
    tenant: exchange.knownTenant ?? undefined,
    query_count: exchange.queryCount,
    code: exchange.errorCode,
    aborted: isComplete(reply.raw) ? undefined : true,
  };
}

const OTEL_NAMES: Readonly<Record<Exclude<keyof RequestRecord, 'duration_ms'>, string>> = {
  method: 'http.request.method',
  route: 'http.route',
  path: 'url.path',
  query: 'kit.query_names',
  status: 'http.response.status_code',
  client_address: 'client.address',
  user_agent: 'user_agent.original',
  user_id: 'user.id',
  scheme: 'kit.auth.scheme',
  credential_id: 'kit.auth.credential_id',
  tenant: 'kit.tenant',
  query_count: 'kit.query_count',
  code: 'error.type',
  aborted: 'kit.aborted',
};

/** OpenTelemetry counts durations in seconds. */
function otelRecord(record: RequestRecord): Record<string, unknown> {
  const renamed: Record<string, unknown> = { 'http.server.request.duration': record.duration_ms / 1000 };
  for (const [name, target] of Object.entries(OTEL_NAMES)) {
    const value = record[name as keyof RequestRecord];
    if (value !== undefined && value !== null) renamed[target] = value;
  }
  return renamed;
}

/**
 * One record per request, when it is over. Its id is on every other record of the request as well.
 *
 * @example
 * ```ts
 * createApp({ middleware: [requestLog()], mount });
 * ```
 */
export function requestLog(options: RequestLogOptions = {}): Middleware {
  const { quiet: paths = [], names = 'flat' } = readOptions('requestLog()', options, {
    names: oneOf('flat', 'otel'),
    quiet: listOf(text),
  });
  const quiet = new Set(paths);
  const shape = (record: RequestRecord): object => ownRecord(names === 'otel' ? otelRecord(record) : record);
  return {
    name: 'request_log',
    // The exchange counts statements as soon as some middleware listens.
    onQuery: () => undefined,
    onFinish(exchange) {
      const record = recordOf(exchange);
      const message = `${record.method} ${record.route ?? record.path} ${record.status}`;
      if (record.status >= 500) exchange.log.error(shape(record), message);
      else if (record.status < 400 && record.route !== null && quiet.has(record.route)) exchange.log.debug(shape(record), message);
      else exchange.log.info(shape(record), message);
    },
  };
}
