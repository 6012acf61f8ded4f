import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { challengesOf } from '../../auth/request/authenticate.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { renderError } from '../../errors/render.ts';
import { translateSocketError } from '../../errors/server-errors.ts';
import type { Throttle } from '../../throttle/throttle.ts';
import { clientThrottleStages, onRequestStages, refuseLongUrl, runStages, type Stage } from '../admit/admission.ts';
import { fail, prepareHeaders, type AnswerPlan } from '../respond/answer.ts';
import { rememberServed } from './call-route.ts';
import type { CompiledRoute } from '../exchange/compiled-route.ts';
import { enclosureOf, type Enclosure } from '../exchange/enclosure.ts';
import { Exchange } from '../exchange/exchange.ts';
import type { Host } from '../exchange/host.ts';
import { parseJson } from '../json/parse-json.ts';
import type { Middleware } from '../exchange/middleware.ts';
import { nodeHttp } from '../exchange/node-http.ts';
import { PathMethods, unmatched } from '../respond/not-found.ts';
import { bodyError, readRawBody, readSlowJson, refuseEncoding, streamsBody } from '../input/read-raw-body.ts';
import { exchangeKey, type KitRequest } from './route-plan.ts';
import { finish, serveRoute } from './serve-route.ts';
import { ownRecord } from '../../observe/own-record.ts';

export interface ServedRoutes {
  readonly routes: readonly CompiledRoute[];
  /** The middleware of each route. */
  readonly middleware: ReadonlyMap<CompiledRoute, readonly Middleware[]>;
  /** The app's middleware that sees requests without a route too. */
  readonly appMiddleware: readonly Middleware[];
  /** The app's throttles; those of the client phase count requests without a route too. */
  readonly appThrottles: readonly Throttle[];
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json(?:\s*;|$)/i;

/** Whether the server ends requests that take too long to arrive. Fastify's default is that it does not. */
function hasDeadline({ server }: FastifyInstance): boolean {
  return server.requestTimeout > 0;
}

/** Registers the table on one Fastify context. Everything set here ends at the context's border. */
export function serveRoutes(fastify: FastifyInstance, host: Host, served: ServedRoutes, server: 'own' | 'foreign'): void {
  fastify.removeAllContentTypeParsers();
  const parse = (request: FastifyRequest, body: Buffer) => {
    refuseEncoding(request.headers);
    refuseCharset(request.headers);
    return body.length === 0 ? undefined : parseJson(body, host.inputLimits);
  };
  const parsed = (request: FastifyRequest, body: Buffer, done: (error: Error | null, value?: unknown) => void) => {
    try {
      done(null, parse(request, body));
    } catch (error) {
      done(error as Error, undefined);
    }
  };
  if (hasDeadline(fastify))
    fastify.addContentTypeParser(JSON_TYPE, { parseAs: 'buffer' }, (request, body, done) => parsed(request, body as Buffer, done));
  else
    fastify.addContentTypeParser(JSON_TYPE, (request, _payload, done) => {
      const exchange = (request as Partial<KitRequest>)[exchangeKey];
      // No route takes it: the 404 does not wait for the body.
      if (exchange === undefined) done(null, undefined);
      else readSlowJson(exchange, (error, body) => (body === undefined ? done(error) : parsed(request, body, done)));
    });
  const serve = (context: FastifyInstance, route: CompiledRoute) => {
    const options = serveRoute(host, route, served.middleware.get(route) ?? []);
    rememberServed(host, route, options);
    return context.route(options);
  };
  const rawRoutes = served.routes.filter(({ rawBody }) => rawBody !== undefined);
  for (const route of served.routes) if (route.rawBody === undefined) serve(fastify, route);
  // A context of their own: the JSON routes keep their one parser.
  if (rawRoutes.length > 0)
    void fastify.register(async (context) => {
      context.removeAllContentTypeParsers();
      context.addContentTypeParser('*', (request, _payload, done) => readRawBody((request as KitRequest)[exchangeKey], done));
      for (const route of rawRoutes) serve(context, route);
    });
  const unmatchedRequests = new UnmatchedRequests(host, served);
  fastify.setErrorHandler((error, request, reply) => {
    // Fastify reads the body of a request that no route takes, too. What is wrong with it does not matter there.
    if (request.is404) unmatchedRequests.answer(request, reply, fastify.prefix);
    else unmatchedRequests.fail(request, reply, error);
  });
  // Inside a foreign server a plugin without a prefix has no 404s of its own: that server's stay in force.
  if (server === 'own' || fastify.prefix !== '')
    fastify.setNotFoundHandler((request, reply) => unmatchedRequests.answer(request, reply, fastify.prefix));
}

/** JSON is UTF-8 (RFC 8259). */
function refuseCharset(headers: FastifyRequest['headers']): void {
  if (headers['content-type'] === 'application/json') return;
  const charset = /;\s*charset\s*=\s*"?([^";\s]*)/i.exec(headers['content-type'] ?? '')?.[1];
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
    throw coreErrors.unsupported_media_type({ detail: 'JSON bodies are UTF-8.' });
  }
}

/** Requests no route took: unknown addresses, wrong methods, URLs that cannot be decoded. */
export class UnmatchedRequests {
  readonly #host: Host;
  readonly #plan: AnswerPlan;
  readonly #middleware: readonly Middleware[];
  readonly #methods: PathMethods;
  readonly #stages: readonly Stage[];
  readonly #enclosure: Enclosure | undefined;

  constructor(host: Host, { routes, appMiddleware, appThrottles }: ServedRoutes) {
    this.#host = host;
    this.#middleware = appMiddleware;
    const onResponse = appMiddleware.filter((each) => each.onResponse !== undefined);
    this.#plan = { onResponse, errors: host.errors, challenges: challengesOf([]) };
    this.#methods = new PathMethods(routes);
    this.#enclosure = enclosureOf(appMiddleware);
    // Looking for addresses costs the client's budget like using them.
    this.#stages = [refuseLongUrl, ...onRequestStages(appMiddleware), ...clientThrottleStages(appThrottles)];
  }

  fail(request: FastifyRequest, reply: FastifyReply, error: unknown): void {
    const exchange = this.#exchange(request, reply);
    this.#enclosed(exchange, () => fail(exchange, this.#plan, bodyError(error, request)));
  }

  answer(request: FastifyRequest, reply: FastifyReply, prefix: string): void {
    const exchange = this.#exchange(request, reply);
    const respond = () => {
      // A request line may hold a whole address (`GET http://host/path`), which the router reads as its path.
      const path = (exchange.url.split('?', 1)[0] as string).replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '');
      const allowed = this.#methods.of(path.slice(prefix.length));
      if (exchange.method !== 'OPTIONS' || allowed.length === 0) throw unmatched(exchange.method, allowed);
      prepareHeaders(exchange, this.#plan);
      reply.code(204).header('allow', allowed.join(', ')).send();
    };
    this.#enclosed(exchange, () => {
      try {
        const pending = runStages(this.#stages, exchange);
        if (pending === undefined) respond();
        else pending.then(respond).catch((error: unknown) => fail(exchange, this.#plan, error));
      } catch (error) {
        fail(exchange, this.#plan, error);
      }
    });
  }

  #enclosed(exchange: Exchange, work: () => void): void {
    if (this.#enclosure === undefined) work();
    else this.#enclosure(exchange, 'admission', work);
  }

  #exchange(request: FastifyRequest, reply: FastifyReply): Exchange {
    const exchange = new Exchange(this.#host, null, request, reply);
    reply.raw.once('close', () => finish(exchange, this.#middleware, this.#enclosure));
    return exchange;
  }

  /** Errors on the socket, before there is a request: not HTTP, headers too large, too slow. */
  refuseSocket(error: Error & { readonly code?: string }, socket: Socket): void {
    // A large body may take longer than a request may; its reader ends it when no more bytes arrive.
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && streamsBody(socket)) return;
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const requestId = crypto.randomUUID();
    const rendered = renderError(translateSocketError(error), { format: this.#host.errorFormat, requestId });
    this.#host.log.debug(ownRecord({ code: rendered.code, request_id: requestId }), 'connection refused');
    const head = [
      `HTTP/1.1 ${rendered.status} ${nodeHttp.STATUS_CODES[rendered.status] ?? ''}`,
      `content-type: ${rendered.contentType}`,
      `content-length: ${Buffer.byteLength(rendered.body)}`,
      `x-request-id: ${requestId}`,
      'connection: close',
    ];
    socket.end(`${head.join('\r\n')}\r\n\r\n${rendered.body}`);
  }
}
