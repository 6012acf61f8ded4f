import type { FastifyReply } from 'fastify';
import type { ErrorMap } from '../../errors/error-map.ts';
import { renderError, type RenderedError } from '../../errors/render.ts';
import { rateLimitHeaders } from '../../throttle/headers.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Middleware } from '../exchange/middleware.ts';
import { nodeHttp } from '../exchange/node-http.ts';
import { ownRecord } from '../../observe/own-record.ts';

/** What is done to every answer of a route, or of requests that match none. */
export interface AnswerPlan {
  readonly onResponse: readonly Middleware[];
  /** Nearest first. */
  readonly errors: readonly ErrorMap[];
  /** The `WWW-Authenticate` value of 401 responses that have none of their own. */
  readonly challenges: string;
}

/** The last step before the headers leave, on every path. */
export function prepareHeaders(exchange: Exchange, plan: AnswerPlan): void {
  const { reply, throttled } = exchange;
  if (throttled.length > 0) reply.headers(rateLimitHeaders(throttled));
  if (reply.statusCode === 401 && !reply.hasHeader('www-authenticate')) reply.header('www-authenticate', plan.challenges);
  for (const middleware of plan.onResponse) middleware.onResponse?.(exchange);
}

/** Renders an error for this exchange and writes down what happened. The caller sends it. */
export function renderFailure(exchange: Exchange, { errors }: Pick<AnswerPlan, 'errors'>, error: unknown): RenderedError {
  exchange.error = error;
  const { host, requestId } = exchange;
  const rendered = renderError(error, { format: host.errorFormat, requestId, maps: errors });
  exchange.errorCode = rendered.code;
  if (rendered.log.level === 'error') {
    exchange.log.error(
      ownRecord({ err: rendered.log.error, code: rendered.code, operation: exchange.route?.operationId }),
      'request failed',
    );
  } else exchange.log.debug(ownRecord({ code: rendered.code, operation: exchange.route?.operationId }), 'request refused');
  return rendered;
}

/** Answers with an error. Safe on every path: already answered, connection gone, failing middleware. */
export function fail(exchange: Exchange, plan: AnswerPlan, error: unknown): void {
  const { reply } = exchange;
  if (exchange.isAbort(error) && (reply.sent || reply.raw.destroyed)) {
    exchange.log.debug({ operation: exchange.route?.operationId }, 'work was stopped: nobody waited for the response');
    return;
  }
  if (reply.sent || reply.raw.headersSent) {
    // The deadline answered, or the body had begun: there is nothing left to tell the caller.
    exchange.log.warn({ err: error, operation: exchange.route?.operationId }, 'error after the response was sent');
    if (!reply.raw.writableEnded) reply.raw.destroy();
    return;
  }
  sendFailure(exchange, plan, renderFailure(exchange, plan, error));
}

/** Sends what was rendered, to a caller who has got nothing yet. */
export function sendFailure(exchange: Exchange, plan: AnswerPlan, rendered: RenderedError): void {
  const { reply } = exchange;
  if (reply.raw.destroyed) return;
  // Headers a handler set for the answer it did not get to give: a stale Content-Type or ETag must not describe the error.
  for (const name of ['content-type', 'content-length', 'content-encoding', 'etag', 'last-modified', 'cache-control', 'location'])
    reply.removeHeader(name);
  reply.code(rendered.status);
  reply.headers(rendered.headers);
  try {
    prepareHeaders(exchange, plan);
  } catch (failure) {
    exchange.log.error({ err: failure }, 'middleware failed while an error response was sent');
  }
  reply.header('content-type', rendered.contentType);
  const body = withSentTag(rendered, reply);
  try {
    reply.send(body);
  } catch (failure) {
    exchange.log.error({ err: failure, operation: exchange.route?.operationId }, 'invalid response headers; response sent without them');
    removeUnsendableHeaders(reply);
    reply.send(body);
  }
}

/** The body of a 412 names the tag of its header: a middleware that changed the one changes both. */
function withSentTag({ headers, body }: RenderedError, reply: FastifyReply): string {
  const [tag, sent] = [headers['etag'], reply.getHeader('etag')];
  if (typeof tag !== 'string' || typeof sent !== 'string' || sent === tag) return body;
  // Inside a string of JSON its quotes are escaped: this is the member.
  return body.replace(`"etag":${JSON.stringify(tag)}`, () => `"etag":${JSON.stringify(sent)}`);
}

/**
 * Node refuses header values with line breaks or characters beyond Latin-1, such as a file name a user chose, and only when they leave. They
 * would be refused again with the error's own answer, and then no handler is left to catch it: an unhandled rejection ends the process.
 */
function removeUnsendableHeaders(reply: FastifyReply): void {
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    try {
      nodeHttp.validateHeaderName(name);
      nodeHttp.validateHeaderValue(name, value as string);
    } catch {
      reply.removeHeader(name);
    }
  }
}
