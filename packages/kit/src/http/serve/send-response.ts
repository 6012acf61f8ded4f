import { AsyncResource } from 'node:async_hooks';
import { isUtf8 } from 'node:buffer';
import { Readable } from 'node:stream';
import { pacedStreams } from '../exchange/client-pace.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { MadeResponse } from '../exchange/middleware.ts';
import type { Replay } from '../idempotency/idempotent-request.ts';
import type { Handling } from '../input/handling.ts';
import { prepareHeaders } from '../respond/answer.ts';
import { type ComposedAnswer, JSON_TEXT, compose, changedBody, discard } from './compose-response.ts';
import type { RoutePlan } from './route-plan.ts';

export function send(plan: RoutePlan, exchange: Exchange, { body, sent, contentType }: ComposedAnswer): void {
  const { reply } = exchange;
  if (reply.sent || reply.raw.headersSent) return;
  prepareHeaders(exchange, plan);
  // What is not JSON may have said itself what it is.
  if (contentType !== undefined && (plan.route.kind === 'json' || !reply.hasHeader('content-type')))
    reply.header('content-type', contentType);
  if (exchange.method === 'HEAD' && body instanceof Readable) {
    // Fastify would read a stream to its end to throw it away.
    discard(body);
    reply.send(Readable.from([]));
    return;
  }
  if (body instanceof Readable) {
    if (plan.enclosure !== undefined) keepAsyncContext(body);
    if (!pacedStreams.has(body)) cutIdleClient(exchange);
  }
  if (body === undefined) reply.send();
  else reply.send(sent ?? body);
}

export function sendMade(plan: RoutePlan, exchange: Exchange, { status, headers, body }: MadeResponse): void {
  const { reply } = exchange;
  if (reply.sent || reply.raw.headersSent) return;
  reply.code(status).headers(headers);
  prepareHeaders(exchange, plan);
  if (headers['content-type'] !== undefined) reply.header('content-type', headers['content-type']);
  if (body.length === 0) reply.send();
  else if (isChangeable(plan, status, headers)) reply.send(changedBody(plan, exchange, textOf(body)));
  // As a text it leaves in one piece with the headers. Fastify adds the character set to other kinds of JSON, and bytes may be no text.
  else reply.send(headers['content-type'] === JSON_TEXT && isUtf8(body) ? textOf(body) : bytesOf(body));
}

/** The response of the first attempt, byte by byte. */
export function replay(plan: RoutePlan, exchange: Exchange, { status, headers, body }: Replay): void {
  const { reply } = exchange;
  if (reply.sent || reply.raw.headersSent) return;
  reply.header('idempotent-replayed', 'true');
  sendMade(plan, exchange, { status, headers, body });
}

/** Kept answers are kept as the handler gave them: another attempt may ask for another form. Errors are not changed. */
function isChangeable({ route, onBody }: RoutePlan, status: number, headers: Replay['headers']): boolean {
  return onBody.length > 0 && route.kind === 'json' && status < 400 && String(headers['content-type']).startsWith('application/json');
}

function bytesOf(body: Uint8Array): Buffer {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

function textOf(body: Uint8Array): string {
  return bytesOf(body).toString();
}

/** A stream is read when its connection has room: what it does then, such as statements, still belongs to this request. */
function keepAsyncContext(stream: Readable): void {
  stream._read = AsyncResource.bind(stream._read.bind(stream));
}

/**
 * What is read to make the stream, a file or a query, is open for as long as the client likes. Node's timer starts over with every byte that
 * leaves; while the source has given nothing to send, the client is not waited for.
 */
function cutIdleClient({ reply: { raw }, host, log, route }: Exchange): void {
  const { clientIdleMs } = host.inputLimits;
  raw.setTimeout(clientIdleMs, () => {
    if (raw.writableLength === 0 && !raw.writableNeedDrain) return;
    log.warn({ operation: route?.operationId }, `a response was cut: its client took nothing for ${clientIdleMs} ms`);
    raw.destroy();
  });
}

export function answer(plan: RoutePlan, exchange: Exchange, context: Handling, value: unknown): void {
  const composed = compose(plan, exchange, context, value);
  if (composed !== undefined) send(plan, exchange, composed);
}
