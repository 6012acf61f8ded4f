import { EventEmitter } from 'node:events';
import type { FastifyReply, FastifyRequest, RouteOptions as FastifyRouteOptions } from 'fastify';
import type { KitError } from '../../errors/kit-error.ts';
import type { CompiledRoute } from '../exchange/compiled-route.ts';
import { Exchange, parentKey } from '../exchange/exchange.ts';
import type { Host } from '../exchange/host.ts';
import { readQuery } from '../input/query-string.ts';
import { exchangeOf } from './serve-route.ts';

/** A request of a route that did not come over a connection of its own. */
export interface RouteCall {
  /** With the query string. */
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly params: Readonly<Record<string, string>>;
  /** Parsed JSON; undefined where there is none. */
  readonly body?: unknown;
  readonly requestId: string;
  /** The address that the call counts for. */
  readonly remoteAddress: string;
  /** The request around the call, whose caller and budgets it shares; null for a call that authenticates itself. */
  readonly parent: Exchange | null;
  /** Finds what is wrong with the body before the route reads it: after admission, as the body of a request is read after it. */
  readonly bodyError?: ((exchange: Exchange) => Promise<KitError>) | undefined;
}

/** The response of a call, and the exchange that made it. */
export interface CallAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: unknown;
  readonly exchange: Exchange;
}

interface ServedRoute {
  readonly host: Host;
  readonly admit: (request: FastifyRequest, reply: FastifyReply, proceed: () => void) => void;
  readonly handle: (request: FastifyRequest, reply: FastifyReply) => void;
  /** Responds to a body that cannot be read. */
  readonly refuse: (error: unknown, request: FastifyRequest) => void;
}

const served = new WeakMap<CompiledRoute, ServedRoute>();

/** Keeps what Fastify runs for a route, for calls of it. */
export function rememberServed(host: Host, route: CompiledRoute, { onRequest, handler, errorHandler }: FastifyRouteOptions): void {
  served.set(route, {
    host,
    admit: onRequest as unknown as ServedRoute['admit'],
    handle: handler,
    refuse: errorHandler as unknown as ServedRoute['refuse'],
  });
}

function servedAs(route: CompiledRoute): ServedRoute {
  const found = served.get(route);
  if (found === undefined) throw new Error(`${route.operationId} is not served yet. Call app.fastify.ready() first.`);
  return found;
}

/**
 * Runs the admission and the handler of a route as Fastify would: one path through every rule, for requests that have no socket. `app.inject`
 * does the same with a router, streams and a second parse, at four times the cost.
 */
export function callRoute(route: CompiledRoute, call: RouteCall, signal: AbortSignal): Promise<CallAnswer> {
  const { admit, handle, refuse } = servedAs(route);
  return new Promise((resolve, reject) => {
    const request = new CalledRequest(route, call) as unknown as FastifyRequest;
    const reply = new CalledReply((status, headers, body) => {
      signal.removeEventListener('abort', abort);
      resolve({ status, headers, body, exchange: exchangeOf(request) });
    });
    const abort = (): void => {
      reply.raw.destroy();
      reject(signal.reason as Error);
    };
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    const proceed = (): void => {
      if (call.bodyError === undefined) handle(request, reply as unknown as FastifyReply);
      else
        void call.bodyError(exchangeOf(request)).then(
          (error) => refuse(error, request),
          (error: unknown) => refuse(error, request),
        );
    };
    admit(request, reply as unknown as FastifyReply, proceed);
  });
}

/** The exchange of a call that the route admits. Nothing of its handler has run. Throws what the route rejects it with. */
export function admitCall(route: CompiledRoute, call: RouteCall): Promise<Exchange> {
  const { admit } = servedAs(route);
  return new Promise((resolve, reject) => {
    const request = new CalledRequest(route, call) as unknown as FastifyRequest;
    const reply = new CalledReply(() => reject(exchangeOf(request).error));
    admit(request, reply as unknown as FastifyReply, () => resolve(exchangeOf(request)));
  });
}

/** An exchange that only asks: what the caller of `parent` could do with the route. Nothing of the route runs. */
export function probeRoute(route: CompiledRoute, parent: Exchange, call: Pick<RouteCall, 'headers'> & Partial<RouteCall>): Exchange {
  const { requestId } = parent;
  const remoteAddress = parent.request.raw.socket.remoteAddress ?? '';
  const request = new ProbedRequest(route, { url: route.path, params: {}, requestId, remoteAddress, ...call, parent });
  const reply = new CalledReply(() => undefined);
  const { host } = servedAs(route);
  const exchange = new Exchange(host, route, request as unknown as FastifyRequest, reply as unknown as FastifyReply);
  exchange.principal = parent.principal;
  exchange.authenticator = parent.authenticator;
  return exchange;
}

/** Whether the exchange has a route and no arguments. */
export function isProbe({ request }: Pick<Exchange, 'request'>): boolean {
  return (request as unknown) instanceof ProbedRequest;
}

/** What code has looked at of a probe. */
export interface ProbeReads {
  /** Whether anything was read that tells the route from others. */
  hasReadCall: boolean;
  /** Whether a parameter of the path was read. */
  hasReadParams: boolean;
  /** Whether the URL of a path with parameters was read. */
  hasReadUrl: boolean;
}

/**
 * Notes what is read of a probe from now on. Not of every probe: properties of its own make an object many times as expensive, and a list of tools
 * makes a probe for each of them.
 */
export function noteReads(exchange: Exchange): ProbeReads {
  const { request, route, method, url } = exchange;
  const reads: ProbeReads = { hasReadCall: false, hasReadParams: false, hasReadUrl: false };
  const names = new Set<string | symbol>(Array.from((route?.path ?? '').matchAll(/:(\w+)/g), ([, name]) => name as string));
  const noted = <T>(value: T, note?: () => void) => ({
    configurable: true,
    get: () => {
      reads.hasReadCall = true;
      note?.();
      return value;
    },
  });
  const params = new Proxy({}, { get: (_target, name) => void (reads.hasReadParams ||= names.has(name)) });
  const address = { url: noted(url, () => (reads.hasReadUrl ||= names.size > 0)), method: noted(method) };
  const own = { params: noted(params), routeOptions: noted(request.routeOptions), query: noted({}), originalUrl: address.url };
  Object.defineProperties(request.raw, address);
  Object.defineProperties(request, { ...address, ...own });
  Object.defineProperty(exchange, 'route', noted(route));
  return reads;
}

/** What the pipeline, middleware and handlers use of Fastify's request. */
class CalledRequest {
  readonly id: string;
  readonly params: object;
  readonly body: unknown;
  readonly headers: RouteCall['headers'];
  readonly raw: object;
  readonly routeOptions: { readonly url: string; readonly method: string };
  readonly [parentKey]: Exchange | undefined;
  readonly #call: RouteCall;

  constructor({ method, path }: CompiledRoute, call: RouteCall) {
    const { url, headers, params, body, requestId, remoteAddress, parent } = call;
    this.#call = call;
    this.id = requestId;
    this.params = params;
    this.body = body;
    this.headers = headers;
    this.routeOptions = { url: path, method };
    const socket = parent !== null && 'encrypted' in parent.request.raw.socket ? { remoteAddress, encrypted: true } : { remoteAddress };
    this.raw = { method, url, headers, socket, httpVersion: '1.1', destroyed: false, complete: true };
    if (parent !== null) this[parentKey] = parent;
  }

  get method(): string {
    return this.routeOptions.method;
  }

  get url(): string {
    return this.#call.url;
  }

  get originalUrl(): string {
    return this.#call.url;
  }

  get query(): object {
    return readQuery(this.#call.url);
  }

  get ip(): string {
    return this.#call.remoteAddress;
  }

  get host(): string {
    return String(this.headers['host'] ?? '');
  }

  get hostname(): string {
    return this.host.replace(/:\d+$/, '');
  }
}

class ProbedRequest extends CalledRequest {}

/** The other end of a connection that does not exist. */
class CalledResponse extends EventEmitter {
  headersSent = false;
  destroyed = false;
  writableEnded = false;
  writableFinished = false;

  destroy(): void {
    if (this.destroyed || this.writableFinished) return;
    this.destroyed = true;
    this.emit('close');
  }
}

/** What the pipeline, middleware and handlers use of Fastify's reply. */
class CalledReply {
  readonly raw = new CalledResponse();
  sent = false;
  statusCode = 200;
  readonly #headers: Record<string, unknown> = {};
  readonly #done: (status: number, headers: Readonly<Record<string, unknown>>, body: unknown) => void;

  constructor(done: (status: number, headers: Readonly<Record<string, unknown>>, body: unknown) => void) {
    this.#done = done;
  }

  code(status: number): this {
    this.statusCode = status;
    return this;
  }

  status(status: number): this {
    return this.code(status);
  }

  type(contentType: string): this {
    return this.header('content-type', contentType);
  }

  header(name: string, value: unknown): this {
    this.#headers[name.toLowerCase()] = value;
    return this;
  }

  headers(all: Readonly<Record<string, unknown>>): this {
    for (const [name, value] of Object.entries(all)) this.header(name, value);
    return this;
  }

  getHeaders(): Record<string, unknown> {
    return { ...this.#headers };
  }

  getHeader(name: string): unknown {
    return this.#headers[name.toLowerCase()];
  }

  hasHeader(name: string): boolean {
    return this.getHeader(name) !== undefined;
  }

  removeHeader(name: string): this {
    delete this.#headers[name.toLowerCase()];
    return this;
  }

  send(body?: unknown): this {
    if (this.sent || this.raw.destroyed) return this;
    this.sent = true;
    Object.assign(this.raw, { headersSent: true, writableEnded: true, writableFinished: true });
    this.raw.emit('close');
    this.#done(this.statusCode, this.#headers, body);
    return this;
  }
}
