import { withoutKeys } from '../auth/people/without-keys.ts';
import type { Exchange } from '../http/exchange/exchange.ts';
import type { Middleware } from '../http/exchange/middleware.ts';
import { readOptions } from '../options/read-options.ts';
import { flag, headerName } from '../options/value-rule.ts';

export interface RequestIdOptions {
  /** The header it is read from and echoed in. */
  readonly header?: string;
  /** `false` ignores what clients send and keeps the generated id. */
  readonly accept?: boolean;
}

/**
 * Ids of other systems (UUIDs, ULIDs, trace ids) pass; anything that could break a log line, a header or a shell does not.
 * 128 characters hold every common format; longer ones would be stored with every log record.
 */
const GRAMMAR = /^[A-Za-z0-9][A-Za-z0-9._~+/=:@-]{0,127}$/;

/** The client's own id where it is well formed and holds no API key, undefined otherwise. */
export function acceptableRequestId(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' && GRAMMAR.test(value) && withoutKeys(value) === value ? value : undefined;
}

/** Takes over a valid incoming `X-Request-ID`, so one id follows a call through several services; echoes it on every answer. */
export function requestId(options: RequestIdOptions = {}): Middleware {
  const { header: name = 'X-Request-ID', accept = true } = readOptions('requestId()', options, { header: headerName, accept: flag });
  const header = name.toLowerCase();
  return {
    name: 'request_id',
    onRequest(exchange: Exchange) {
      const given = accept ? acceptableRequestId(exchange.headers[header]) : undefined;
      if (given !== undefined) exchange.requestId = given;
    },
    onResponse(exchange: Exchange) {
      exchange.reply.header(header, exchange.requestId);
    },
  };
}
