import {
  context,
  type Context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span as OtelSpan,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api';
import { isKitError } from '../../errors/kit-error.ts';
import { formatTraceParent, parseTraceParent } from '../../observe/traceparent.ts';
import type { Span, SpanAttributes, SpanOptions, Tracing } from '../../observe/tracing.ts';
import { UnrecordedContext } from './unrecorded-span.ts';

const KINDS: Readonly<Record<NonNullable<SpanOptions['kind']>, SpanKind>> = {
  internal: SpanKind.INTERNAL,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
};

/** The toolkit's spans on OpenTelemetry's API: whichever SDK the process has registered records them, or none does. */
export class OtelTracing implements Tracing {
  readonly tracer: Tracer;

  constructor(tracer: Tracer) {
    this.tracer = tracer;
  }

  isRecording(): boolean {
    return isRecordingNow();
  }

  span<R>(name: string, options: SpanOptions, work: (span: Span | undefined) => R): R {
    const { kind = 'internal', attributes = {}, parent, links = [] } = options;
    // Spans inside a request that is not recorded would cost and show nothing.
    if (parent === undefined && !isRecordingNow()) return work(undefined);
    const around = context.active();
    const outer = parent === undefined ? around : storedContext(parent);
    const linked = links.flatMap((link) => contextOf(link) ?? []).map((linkedContext) => ({ context: linkedContext }));
    const span = this.tracer.startSpan(name, { kind: KINDS[kind], attributes, links: linked }, outer);
    return context.with(trace.setSpan(outer, span), () => ending(span, () => work(new StartedSpan(span))));
  }

  traceparent(): string | undefined {
    const running = trace.getSpanContext(context.active());
    return running === undefined || !isSpanContextValid(running) ? undefined : traceparentOf(running);
  }

  ids(): { readonly trace_id: string; readonly span_id: string } | undefined {
    const running = trace.getSpanContext(context.active());
    if (running === undefined || !isSpanContextValid(running)) return undefined;
    return { trace_id: running.traceId, span_id: running.spanId };
  }
}

/** Whether the running work is inside a span that is recorded. */
export function isRecordingNow(): boolean {
  const active = context.active();
  // Without making the span of a request that is not recorded.
  return !(active instanceof UnrecordedContext) && trace.getSpan(active)?.isRecording() === true;
}

class StartedSpan implements Span {
  readonly #span: OtelSpan;

  constructor(span: OtelSpan) {
    this.#span = span;
  }

  set(attributes: SpanAttributes): void {
    this.#span.setAttributes(attributes);
  }

  fail(errorType: string): void {
    markFailed(this.#span, errorType);
  }

  get traceparent(): string {
    return traceparentOf(this.#span.spanContext());
  }
}

/** Without the message: it may quote values. */
export function markFailed(span: OtelSpan, errorType: string): void {
  span.setAttribute('error.type', errorType);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

function ending<R>(span: OtelSpan, work: () => R): R {
  let result: R;
  try {
    result = work();
  } catch (error) {
    endFailed(span, error);
    throw error;
  }
  if (!(result instanceof Promise)) {
    span.end();
    return result;
  }
  return result.then(
    (value: unknown) => {
      span.end();
      return value;
    },
    (error: unknown) => {
      endFailed(span, error);
      throw error;
    },
  ) as R;
}

/** An answer such as 404 is thrown too; it is no fault of the server. */
function endFailed(span: OtelSpan, error: unknown): void {
  if (isKitError(error) && error.status < 500) span.setAttribute('error.type', error.code);
  else markFailed(span, isKitError(error) ? error.code : error instanceof Error ? error.name : 'Error');
  span.end();
}

/** Null, and what is not a traceparent, begins a trace of its own. */
function storedContext(parent: string | null): Context {
  const remote = parent === null ? undefined : contextOf(parent);
  return remote === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote);
}

export function contextOf(traceparent: unknown): SpanContext | undefined {
  const parsed = parseTraceParent(traceparent);
  if (parsed === undefined) return undefined;
  const traceFlags = parsed.isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  return { traceId: parsed.traceId, spanId: parsed.spanId, traceFlags, isRemote: true };
}

function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return formatTraceParent({ traceId, spanId, isSampled: (traceFlags & TraceFlags.SAMPLED) !== 0 });
}
