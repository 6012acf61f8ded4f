import type { QueryEvent } from '../../db/engine/query-observer.ts';
import type { CompiledRoute, MiddlewareDocument, ResponseFacts } from './compiled-route.ts';
import type { Exchange } from './exchange.ts';

/**
 * `admission`: up to the permission. `handling`: input, handler, answer. `finish`: after the answer. A GET reads no body, so its admission and
 * handling are one part, `admission`.
 */
export type RequestPart = 'admission' | 'handling' | 'finish';

/** A response before it leaves: status, the headers that its operation set, and its body as bytes. */
export interface MadeResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: Uint8Array;
}

/**
 * Work around every request of the app, of one version mount or of one controller, in the order given. Each hook is optional:
 *
 * onRequest   before throttles and authentication; throwing refuses the request
 * onAdmitted  after throttles, authentication and permission, before the body is read; throwing refuses the request
 * handle      after permission and validation, around the handler: call `next()` for its value, or answer without it
 * onResponse  just before the headers leave, on every answer including errors and 404s: set headers with `exchange.reply.header`
 * onFinish    after the answer left, or the connection died
 * within      around each part of the request, for what lives in the async context: call `work` once and return its result
 * respond     around the making of a whole response, after permission and validation, on routes without a transaction: call `make()` once, or
 *             return one that was made before
 * onBody      the JSON text of a successful answer, made and checked against its schema: return the text to send
 * onQuery     after every statement the request ran, from authentication on; throwing makes the statement fail. With it, statements are timed
 *
 * App-level middleware also sees requests that match no route (`exchange.route` is null).
 */
export interface Middleware {
  /** Names the middleware in problems and in `kit inspect`. */
  readonly name: string;
  /** What it adds to the operations in the OpenAPI document. */
  readonly documents?: MiddlewareDocument;
  /** Asked once per route at start-up; the hooks cost nothing on routes it declines. Everything unless said. */
  appliesTo?(route: CompiledRoute): boolean;
  /** For `kit inspect`. Asked once per route that it applies to. */
  responseFacts?(route: CompiledRoute): ResponseFacts;
  /** Before throttles and authentication. Throwing rejects the request. */
  onRequest?(exchange: Exchange): void | Promise<void>;
  /** The caller is known and permitted, the body is not read. A permission that asks about an object is decided later. Throwing rejects the request. */
  onAdmitted?(exchange: Exchange): void | Promise<void>;
  /** Around the handler, after permission and validation: call `next()` for its value, or return another one. */
  handle?(exchange: Exchange, next: () => Promise<unknown>): Promise<unknown>;
  /** Before the headers are sent, on every response: set headers with `exchange.reply.header`. */
  onResponse?(exchange: Exchange): void;
  /** After the response was sent, or the connection was lost. */
  onFinish?(exchange: Exchange): void;
  /**
   * `make` gives undefined for what cannot be kept: a stream, or a response that already left. `audience` says which rows and fields this
   * caller sees, where the route knows.
   */
  respond?(
    exchange: Exchange,
    make: () => Promise<MadeResponse | undefined>,
    audience: () => string | Promise<string>,
  ): Promise<MadeResponse | undefined>;
  /** Gets the JSON of a successful response; returns the text to send. */
  onBody?(exchange: Exchange, body: string): string;
  /** Around each part of a request: call `work` once and return its result. */
  within?<R>(exchange: Exchange, part: RequestPart, work: () => R): R;
  /** After every statement of the request. Throwing makes the statement fail. */
  onQuery?(exchange: Exchange, query: QueryEvent): void;
}
