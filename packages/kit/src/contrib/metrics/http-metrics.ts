import type { CompiledRoute } from '../../http/compiled-route.ts';
import type { Exchange } from '../../http/exchange.ts';
import { idempotencyOutcomes } from '../../http/idempotency/outcome.ts';
import type { Middleware } from '../../http/middleware.ts';
import type { MetricRegistry } from '../../observe/metric-registry.ts';

/** What requests that match no route are counted as: their paths are a stranger's to choose. */
const UNMATCHED = 'unmatched';
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'QUERY', 'OPTIONS'];
const STATUSES = ['1xx', '2xx', '3xx', '4xx', '5xx', 'aborted'];
const BYTES = [100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

interface Arrival {
  readonly key: string;
  /** What the connection had sent before. */
  readonly bytesSent: number;
}

/** Counts requests by method, route template and status class; made once the routes are known. */
export class HttpMetrics {
  readonly #finish: (exchange: Exchange, bytesSentBefore: number) => void;
  /** By method and route; one number each, so that a scrape shows all of them. */
  readonly #inFlight = new Map<string, number>();
  readonly #arrivals = new WeakMap<Exchange, Arrival>();

  constructor(registry: MetricRegistry, routes: readonly CompiledRoute[]) {
    const paths = [...new Set(routes.map(({ path }) => path)), UNMATCHED];
    const place = { method: METHODS, route: paths };
    const duration = registry.histogram({
      name: 'http_server_request_duration_seconds',
      help: 'Time from the arrival of a request to the end of its answer.',
      labels: { ...place, status: STATUSES },
    });
    const size = registry.histogram({
      name: 'http_server_response_body_size_bytes',
      help: 'Size of the body of an answer.',
      labels: { ...place, status: STATUSES },
      buckets: BYTES,
    });
    const throttled = registry.counter({
      name: 'kit_throttle_decisions_total',
      help: 'Decisions of the throttles of routes, by the name of the throttle.',
      labels: { policy: { max: 100 }, decision: ['allowed', 'refused'] },
    });
    const authenticated = registry.counter({
      name: 'kit_authentications_total',
      help: 'Requests to routes with authentication, by its outcome.',
      labels: { scheme: { max: 20 }, outcome: ['accepted', 'anonymous', 'refused', 'failed'] },
    });
    const invalid = registry.counter({
      name: 'kit_invalid_responses_total',
      help: 'Responses that did not match their schema, of those that were checked.',
      labels: place,
    });
    const idempotent = registry.counter({
      name: 'kit_idempotency_requests_total',
      help: 'Requests with an idempotency key, by what it came to.',
      labels: { outcome: idempotencyOutcomes },
    });
    registry.gauge({
      name: 'http_server_active_requests',
      help: 'Requests that are being answered.',
      labels: place,
      read: () =>
        [...this.#inFlight].map(([key, value]) => {
          const [method = '', route = ''] = key.split(' ', 2);
          return { labels: { method, route }, value };
        }),
    });
    this.#finish = (exchange, bytesSentBefore) => {
      const { method, route } = labelsOf(exchange);
      const status = statusOf(exchange);
      duration.observe({ method, route, status }, (performance.now() - exchange.startedAt) / 1000);
      size.observe({ method, route, status }, bodyBytes(exchange, bytesSentBefore));
      if (exchange.hasInvalidResponse) invalid.add({ method, route });
      for (const { policy, decision } of exchange.throttled) throttled.add({ policy, decision: decision.allowed ? 'allowed' : 'refused' });
      if (exchange.idempotency !== null) idempotent.add({ outcome: exchange.idempotency });
      if (exchange.authentication !== null)
        authenticated.add({ scheme: exchange.authenticator?.name ?? 'none', outcome: exchange.authentication });
    };
  }

  started(exchange: Exchange): void {
    const { method, route } = labelsOf(exchange);
    const key = `${METHODS.includes(method) ? method : 'other'} ${route}`;
    this.#arrivals.set(exchange, { key, bytesSent: bytesSent(exchange) });
    this.#inFlight.set(key, (this.#inFlight.get(key) ?? 0) + 1);
  }

  finished(exchange: Exchange): void {
    const arrival = this.#arrivals.get(exchange);
    if (arrival !== undefined) this.#inFlight.set(arrival.key, (this.#inFlight.get(arrival.key) ?? 1) - 1);
    this.#finish(exchange, arrival?.bytesSent ?? 0);
  }
}

export function httpMetrics(metrics: () => HttpMetrics | undefined): Middleware {
  return {
    name: 'metrics',
    within(exchange, part, work) {
      if (part === 'admission') metrics()?.started(exchange);
      return work();
    },
    onFinish: (exchange) => metrics()?.finished(exchange),
  };
}

function labelsOf({ method, route }: Exchange): { readonly method: string; readonly route: string } {
  return { method, route: route?.path ?? UNMATCHED };
}

function statusOf({ reply }: Exchange): string {
  return reply.raw.headersSent || reply.sent ? `${Math.floor(reply.statusCode / 100)}xx` : 'aborted';
}

/** What was announced. A stream announces nothing: what its connection sent for it, headers included, is close. */
function bodyBytes(exchange: Exchange, bytesSentBefore: number): number {
  if (exchange.method === 'HEAD') return 0;
  const announced = Number(exchange.reply.getHeader('content-length') ?? Number.NaN);
  return Number.isFinite(announced) ? announced : Math.max(0, bytesSent(exchange) - bytesSentBefore);
}

/** An injected request has no connection. */
function bytesSent({ request }: Exchange): number {
  const { bytesWritten } = request.raw.socket as { readonly bytesWritten?: number };
  return bytesWritten ?? 0;
}
