import type { Socket } from 'node:net';
import { Transform, type TransformCallback } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { coreErrors } from '../../errors/core-errors.ts';
import { isKitError, type KitError } from '../../errors/kit-error.ts';
import { openStreamsOf } from '../admit/open-streams.ts';
import { ClientPace } from '../exchange/client-pace.ts';
import type { CompiledRoute } from '../exchange/compiled-route.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { takesMediaType, type RawBody } from '../declare/raw.ts';

/** Connections whose body is on its way to a handler. */
const streaming = new WeakSet<Socket>();

/** Whether a body is on its way over this connection, so that the limit on the length of a request does not apply. */
export function streamsBody(socket: Socket): boolean {
  return streaming.has(socket);
}

/** Compressed bodies would have to be limited twice, so they are refused. */
export function refuseEncoding(headers: FastifyRequest['headers']): void {
  const encoding = headers['content-encoding'];
  if (encoding === undefined || encoding.toLowerCase() === 'identity') return;
  throw coreErrors.unsupported_media_type({
    detail: 'Compressed request bodies are not supported.',
    headers: { 'accept-encoding': 'identity' },
  });
}

export function refuseMediaType({ mediaTypes }: RawBody, contentType: string | undefined): void {
  if (takesMediaType(mediaTypes, contentType)) return;
  throw coreErrors.unsupported_media_type({ detail: `This operation takes ${mediaTypes.join(', ')}.` });
}

/** The parser of routes with a raw body: a stream for the handler, or all bytes. The limit holds while they arrive. */
export function readRawBody(exchange: Exchange, done: (error: Error | null, body?: unknown) => void): void {
  const { request } = exchange;
  const route = exchange.route as CompiledRoute;
  const rawBody = route.rawBody as RawBody;
  try {
    refuseEncoding(request.headers);
    refuseMediaType(rawBody, request.headers['content-type']);
    // A body that says it is too large is not begun.
    if (Number(request.headers['content-length'] ?? 0) > route.bodyBytesMax) throw tooLarge(route.bodyBytesMax);
  } catch (error) {
    done(error as Error);
    return;
  }
  const body = limitedBody(exchange, route.bodyBytesMax);
  // Two requests with one key are compared by their bytes, so these must be there before the handler runs.
  const isCompared = route.idempotency !== undefined && request.headers['idempotency-key'] !== undefined;
  if (rawBody.stream && !isCompared) done(null, body);
  else collect(body, done);
}

function collect(body: Transform, done: (error: Error | null, body?: Buffer) => void): void {
  const chunks: Buffer[] = [];
  body.on('data', (chunk: Buffer) => chunks.push(chunk));
  body.once('error', (error) => done(error));
  body.once('end', () => done(null, Buffer.concat(chunks)));
}

/**
 * The bytes of a JSON body on a server that has no deadline for requests. On the app's own server Node ends those that take too long, and
 * Fastify reads the bytes.
 */
export function readSlowJson(exchange: Exchange, done: (error: Error | null, body?: Buffer) => void): void {
  const { bodyBytesMax } = exchange.route as CompiledRoute;
  if (Number(exchange.request.headers['content-length'] ?? 0) > bodyBytesMax) done(tooLarge(bodyBytesMax));
  else collect(limitedBody(exchange, bodyBytesMax), done);
}

/** The request's bytes, at most so many, at the pace that clients must keep. It fails with the error that the caller gets. */
function limitedBody(exchange: Exchange, bytesMax: number): Transform {
  const { request, host } = exchange;
  const { raw } = request;
  const { socket } = raw;
  const body = new LimitedBody(bytesMax);
  const { bodyIdleMs: idleMs, bodyBytesPerSecond: bytesPerSecond } = host.inputLimits;
  const onSlow = (why: string) => body.destroy(coreErrors.request_timeout({ detail: `The request body arrived too slowly: ${why}.` }));
  const pace = new ClientPace({ verb: 'sent', idleMs, bytesPerSecond, onSlow });
  const cut = () => {
    // A request of `app.inject()` has no `complete`.
    if (!raw.complete && !raw.readableEnded)
      body.destroy(coreErrors.malformed_body({ detail: 'The connection ended before the body was complete.' }));
  };
  const endLooking = whileAdmitted(exchange, (reason) => body.destroy(reason));
  streaming.add(socket);
  raw.once('error', cut);
  raw.once('close', cut);
  raw.once('end', () => pace.stop());
  body.once('close', () => {
    endLooking();
    pace.stop();
    streaming.delete(socket);
    raw.unpipe(body);
  });
  // There may be no listener any more when it fails, which must not end the process.
  body.on('error', () => undefined);
  body.on('drain', () => pace.wait());
  raw.pipe(body);
  // After the pipe: while the handler has not taken what arrived, the client is not waited for.
  raw.on('data', (chunk: Buffer) => {
    pace.moved(chunk.length);
    if (!body.writableNeedDrain) pace.wait();
  });
  pace.wait();
  return body;
}

/** A body may take hours. Its caller is looked up while it arrives, as that of a stream is: whoever loses the right writes nothing any more. */
function whileAdmitted(exchange: Exchange, refuse: (reason: KitError) => void): () => void {
  if (exchange.principal === null) return () => undefined;
  const { signal, host } = exchange;
  const endLooking = openStreamsOf(host).watch(exchange);
  const lost = () => {
    if (isKitError(signal.reason)) refuse(signal.reason);
  };
  signal.addEventListener('abort', lost, { once: true });
  return () => {
    signal.removeEventListener('abort', lost);
    endLooking();
  };
}

class LimitedBody extends Transform {
  #left: number;
  readonly #bytesMax: number;

  constructor(bytesMax: number) {
    super();
    this.#bytesMax = bytesMax;
    this.#left = bytesMax;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, callback: TransformCallback): void {
    this.#left -= chunk.length;
    if (this.#left < 0) callback(tooLarge(this.#bytesMax));
    else callback(null, chunk);
  }
}

function tooLarge(bytesMax: number): KitError {
  return coreErrors.body_too_large({ extensions: { bytes_max: bytesMax } });
}

/** What Fastify found wrong while it read a body. A client that goes away before the end is not a failure of the server. */
export function bodyError(error: unknown, { raw }: FastifyRequest, bytesMax?: number): unknown {
  if (raw.destroyed && !raw.complete)
    return coreErrors.malformed_body({ detail: 'The connection ended before the body was complete.', cause: error });
  if ((error as { code?: unknown } | null)?.code !== 'FST_ERR_CTP_BODY_TOO_LARGE' || bytesMax === undefined) return error;
  return coreErrors.body_too_large({ extensions: { bytes_max: bytesMax }, cause: error });
}

/** The rest of a body that is not read need not be received. */
export function closeUnreadBody(
  { raw }: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
  done: (error: Error | null, payload?: unknown) => void,
): void {
  if (!raw.complete) void reply.header('connection', 'close');
  done(null, payload);
}
