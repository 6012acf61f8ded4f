import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import type { Exchange } from '../../http/exchange/exchange.ts';
import { idempotencyOutcomes } from '../../http/declare/idempotency-outcome.ts';
import type { Middleware } from '../../http/exchange/middleware.ts';
import type { MetricRegistry } from '../../observe/metric-registry.ts';
import { OTHER } from './bounded-labels.ts';
import { TopTenants } from './top-tenants.ts';

/** What requests that match no route are counted as: their paths are a stranger's to choose. */
const UNMATCHED = 'unmatched';
const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'QUERY', 'OPTIONS'];
const STATUSES = ['1xx', '2xx', '3xx', '4xx', '5xx', 'aborted'];
const BYTES = [100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/** A method and a route, as they are shown. */
interface Place {
  readonly method: string;
  readonly route: string;
  inFlight: number;
}

/** Counts requests by method, route template and status class; made once the routes are known. */
export class HttpMetrics {
  readonly #finish: (exchange: Exchange, place: Place) => void;
  /** By route, then by method: HEAD is answered by the route of GET. */
  readonly #places = new Map<CompiledRoute | null, Map<string, Place>>();

  constructor(registry: MetricRegistry, routes: readonly CompiledRoute[], tenants: number) {
    const paths = [...new Set(routes.map(({ path }) => path)), UNMATCHED];
    const place = { method: METHODS, route: paths };
    const duration = registry.histogram({
      name: 'http_server_request_duration_seconds',
      help: 'Time from the arrival of a request to the end of its response.',
      labels: { ...place, status: STATUSES },
    });
    const size = registry.histogram({
      name: 'http_server_response_body_size_bytes',
      help: 'Size of a response body.',
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
      help: 'Requests with an idempotency key, by outcome.',
      labels: { outcome: idempotencyOutcomes },
    });
    registry.gauge({
      name: 'http_server_active_requests',
      help: 'Requests in progress.',
      labels: place,
      read: () =>
        [...this.#places.values()].flatMap((byMethod) =>
          [...byMethod.values()].map(({ method, route, inFlight }) => ({ labels: { method, route }, value: inFlight })),
        ),
    });
    const byTenant = tenants === 0 ? undefined : tenantGauges(registry, tenants);
    this.#finish = (exchange, { method, route }) => {
      const labels = { method, route, status: statusOf(exchange) };
      const seconds = (performance.now() - exchange.startedAt) / 1000;
      duration.observe(labels, seconds);
      // Once the membership is proved: a name that a stranger sends is never here.
      if (exchange.knownTenant !== null) byTenant?.count(exchange.knownTenant, labels.status, seconds);
      size.observe(labels, bodyBytes(exchange));
      if (exchange.hasInvalidResponse) invalid.add({ method, route });
      for (const { policy, decision } of exchange.throttled) throttled.add({ policy, decision: decision.allowed ? 'allowed' : 'refused' });
      if (exchange.idempotency !== null) idempotent.add({ outcome: exchange.idempotency });
      if (exchange.authentication !== null)
        authenticated.add({ scheme: exchange.authenticator?.name ?? 'none', outcome: exchange.authentication });
    };
  }

  started(exchange: Exchange): void {
    exchange.bytesSentBefore = bytesSent(exchange);
    this.#placeOf(exchange).inFlight += 1;
  }

  finished(exchange: Exchange): void {
    const place = this.#placeOf(exchange);
    if (exchange.bytesSentBefore !== null) place.inFlight -= 1;
    this.#finish(exchange, place);
  }

  #placeOf({ method, route }: Exchange): Place {
    let byMethod = this.#places.get(route);
    if (byMethod === undefined) this.#places.set(route, (byMethod = new Map()));
    const known = byMethod.get(method);
    if (known !== undefined) return known;
    // Other names come from strangers, and there is no end to them.
    const shown = METHODS.includes(method) ? method : OTHER;
    let place = byMethod.get(shown);
    if (place === undefined) byMethod.set(shown, (place = { method: shown, route: route?.path ?? UNMATCHED, inFlight: 0 }));
    return place;
  }
}

export function httpMetrics(metrics: () => HttpMetrics | undefined): Middleware {
  return {
    name: 'metrics',
    onRequest: (exchange) => metrics()?.started(exchange),
    onFinish: (exchange) => metrics()?.finished(exchange),
  };
}

/** Of the busiest tenants of this process. Gauges: a tenant that others overtake is counted among the others. */
function tenantGauges(registry: MetricRegistry, shown: number): TopTenants {
  const top = new TopTenants(shown);
  registry.gauge({
    name: 'kit_tenant_requests',
    help: 'Requests of the busiest tenants since this process began to follow them; the others are counted together.',
    labels: { tenant: { max: shown }, status: STATUSES },
    read: () =>
      top.read().flatMap(({ tenant, requests }) => [...requests].map(([status, value]) => ({ labels: { tenant, status }, value }))),
  });
  registry.gauge({
    name: 'kit_tenant_request_seconds',
    help: 'Time that the requests of these tenants took together.',
    labels: { tenant: { max: shown } },
    read: () => top.read().map(({ tenant, seconds }) => ({ labels: { tenant }, value: seconds })),
  });
  return top;
}

function statusOf({ reply }: Exchange): string {
  return reply.raw.headersSent || reply.sent ? `${Math.floor(reply.statusCode / 100)}xx` : 'aborted';
}

/** What was announced. A stream announces nothing: what its connection sent for it, headers included, is close. */
function bodyBytes(exchange: Exchange): number {
  if (exchange.method === 'HEAD') return 0;
  const announced = Number(exchange.reply.getHeader('content-length') ?? Number.NaN);
  return Number.isFinite(announced) ? announced : Math.max(0, bytesSent(exchange) - (exchange.bytesSentBefore ?? 0));
}

/** An injected request has no connection. */
function bytesSent({ request }: Exchange): number {
  const { bytesWritten } = request.raw.socket as { readonly bytesWritten?: number };
  return bytesWritten ?? 0;
}
