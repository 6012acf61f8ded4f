import type * as OpenTelemetry from '@opentelemetry/api';
import type { AuditRecord, Endpoint } from '../audit/audit-entry.ts';
import type { RecordSpan } from './record-span.ts';
import type { TraceParent } from './traceparent.ts';

const ROUTES: Readonly<Partial<Record<Endpoint, string>>> = {
  document: '/{application}/{profile}',
  paths: '/{application}/{profile}/paths',
  explain: '/{application}/{profile}/explain/{path}',
  check: '/{application}/{profile}/check',
  status: '/{application}/{profile}/status',
  stream: '/{application}/{profile}/stream',
  history: '/{application}/{profile}/history',
  metrics: '/metrics',
};

/** Semantic conventions ask for `_OTHER` where a method is not a known one: a name of a stranger's choice is no label. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', 'QUERY']);

/** Spans carry what the audit line carries: no path as it was sent, no key path, no value. Probes make none. */
export function requestSpans(api: typeof OpenTelemetry, version: string): RecordSpan {
  const tracer = api.trace.getTracer('@kit/config-server', version);
  return (request) => {
    const { record, status, startedAt } = request;
    if (record.endpoint === 'healthz' || record.endpoint === 'readyz') return undefined;
    const method = METHODS.has(request.method) ? request.method : '_OTHER';
    const route = ROUTES[record.endpoint];
    const span = tracer.startSpan(
      route === undefined ? method : `${method} ${route}`,
      { kind: api.SpanKind.SERVER, startTime: startedAt, attributes: attributesOf(record, method, route, status) },
      contextOf(api, request.parent),
    );
    if (status >= 500) span.setStatus({ code: api.SpanStatusCode.ERROR });
    span.end(performance.now());
    const context = span.spanContext();
    return api.isSpanContextValid(context) ? context.traceId : undefined;
  };
}

function contextOf(api: typeof OpenTelemetry, parent: TraceParent | undefined): OpenTelemetry.Context {
  if (parent === undefined) return api.ROOT_CONTEXT;
  const { traceId, spanId, sampled } = parent;
  const traceFlags = sampled ? api.TraceFlags.SAMPLED : api.TraceFlags.NONE;
  return api.trace.setSpanContext(api.ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}

function attributesOf(record: AuditRecord, method: string, route: string | undefined, status: number): Record<string, string | number> {
  const { outcome, caller, application, profile, generation } = record;
  return {
    'http.request.method': method,
    'http.response.status_code': status,
    'config.outcome': outcome,
    ...(route === undefined ? {} : { 'http.route': route }),
    ...(caller === undefined ? {} : { 'config.caller': caller }),
    ...(application === undefined ? {} : { 'config.application': application }),
    ...(profile === undefined ? {} : { 'config.profile': profile }),
    ...(generation === undefined ? {} : { 'config.generation': generation }),
  };
}
