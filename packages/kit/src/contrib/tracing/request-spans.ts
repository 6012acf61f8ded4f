import {
  context,
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  trace,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api';
import { withoutKeys } from '../../auth/people/without-keys.ts';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import type { Exchange } from '../../http/exchange/exchange.ts';
import type { Middleware } from '../../http/exchange/middleware.ts';
import { maskedPath } from '../../middleware/masking.ts';
import { contextOf, markFailed } from './otel-tracing.ts';
import { UnrecordedContext } from './unrecorded-span.ts';

/** Other names come from strangers, and there is no end to them. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'QUERY', 'OPTIONS']);
const TEXT_MAX = 256;

/**
 * A span around each request, in the trace its `traceparent` names; everything the request does happens inside it. Requests outside `sampleRatio` get
 * one that is not recorded and makes its ids when they are read.
 */
export function requestSpans(tracer: Tracer, sampleRatio: number): Middleware {
  const names = new WeakMap<CompiledRoute, { readonly name: string; readonly attributes: Readonly<Record<string, string>> }>();
  const start = (exchange: Exchange): Context => {
    const caller = callerOf(exchange);
    if (sampleRatio < 1 && !caller.isTrusted && Math.random() >= sampleRatio) return new UnrecordedContext(caller.given?.traceId);
    const { route } = exchange;
    let described = route === null ? undefined : names.get(route);
    if (described === undefined) {
      described = describe(route, exchange.method);
      // HEAD is answered by the route of GET.
      if (route !== null && route.method === exchange.method) names.set(route, described);
    }
    const parent = parentOf(caller, tracer, sampleRatio);
    const span = tracer.startSpan(described.name, { kind: SpanKind.SERVER, attributes: described.attributes }, parent);
    // What is not recorded has no end to wait for. The log of the request, which is written at the same moment, comes first.
    if (span.isRecording()) {
      exchange.isRecorded = true;
      span.setAttributes(arrivalOf(exchange));
      exchange.reply.raw.once('close', () => endWithAnswer(span, exchange));
    }
    return trace.setSpan(parent, span);
  };
  return {
    name: 'tracing',
    within(exchange, part, work) {
      const around = part === 'admission' ? (exchange.traceContext = start(exchange)) : exchange.traceContext;
      return around === undefined ? work() : context.with(around as Context, work);
    },
  };
}

function describe(
  route: CompiledRoute | null,
  method: string,
): { readonly name: string; readonly attributes: Readonly<Record<string, string>> } {
  const known = METHODS.has(method) ? method : '_OTHER';
  const verb = known === '_OTHER' ? 'HTTP' : known;
  if (route === null) return { name: verb, attributes: { 'http.request.method': known } };
  return { name: `${verb} ${route.path}`, attributes: { 'http.request.method': known, 'http.route': route.path } };
}

interface CallerTrace {
  /** What the caller's `traceparent` says, if it is valid. */
  readonly given: SpanContext | undefined;
  readonly isTrusted: boolean;
}

const NO_TRACE: CallerTrace = { given: undefined, isTrusted: false };

function callerOf({ headers, host, request }: Exchange): CallerTrace {
  const given = headers['traceparent'] === undefined ? undefined : contextOf(headers['traceparent']);
  if (given === undefined) return NO_TRACE;
  if (!host.trustedProxies.trusts(request.raw.socket.remoteAddress ?? '')) return { given, isTrusted: false };
  const state = headers['tracestate'];
  return { given: typeof state === 'string' ? { ...given, traceState: createTraceState(state) } : given, isTrusted: true };
}

/**
 * The trace of the caller goes on here. Whether it is recorded is the caller's decision only where the neighbour that sent the request is a
 * trusted proxy: a stranger could have everything recorded, or nothing. For strangers `sampleRatio` has decided, or the SDK decides as for a request
 * without a trace.
 */
function parentOf({ given, isTrusted }: CallerTrace, tracer: Tracer, sampleRatio: number): Context {
  if (given === undefined) return ROOT_CONTEXT;
  if (isTrusted) return trace.setSpanContext(ROOT_CONTEXT, given);
  const traceFlags = sampleRatio < 1 ? TraceFlags.SAMPLED : sampledByTheSdk(tracer);
  return trace.setSpanContext(ROOT_CONTEXT, { ...given, traceFlags });
}

/** The span is never ended, so never exported: it only asks the sampler. */
function sampledByTheSdk(tracer: Tracer): TraceFlags {
  return tracer.startSpan('sampling decision', { root: true }, ROOT_CONTEXT).spanContext().traceFlags & TraceFlags.SAMPLED;
}

function arrivalOf(exchange: Exchange): Readonly<Record<string, string>> {
  const { route, url, headers, request } = exchange;
  const path = url.split('?', 1)[0] as string;
  const agent = headers['user-agent'];
  const attributes: Record<string, string> = {
    'url.path': shown(route === null ? path : maskedPath(path, request.routeOptions.url ?? route.path, route.params)),
    'url.scheme': 'encrypted' in request.raw.socket ? 'https' : 'http',
    'client.address': exchange.clientAddress,
    'network.protocol.version': request.raw.httpVersion,
  };
  if (typeof agent === 'string') attributes['user_agent.original'] = shown(agent);
  if (!METHODS.has(exchange.method)) attributes['http.request.method_original'] = shown(exchange.method);
  return attributes;
}

function endWithAnswer(span: Span, { reply, errorCode }: Exchange): void {
  const isAborted = !reply.raw.headersSent && !reply.sent;
  if (!isAborted) span.setAttribute('http.response.status_code', reply.statusCode);
  if (isAborted) markFailed(span, 'aborted');
  else if (reply.statusCode >= 500) markFailed(span, errorCode ?? String(reply.statusCode));
  else if (errorCode !== undefined) span.setAttribute('error.type', errorCode);
  span.end();
}

/** The client's own words, but no key that was put there by mistake. */
function shown(text: string): string {
  return withoutKeys(text).slice(0, TEXT_MAX);
}
