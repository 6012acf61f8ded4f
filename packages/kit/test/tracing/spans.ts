import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';

/** What tests look at, in a form that can be sent to another process. */
export interface SeenSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly links: readonly string[];
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** A real SDK that keeps finished spans in memory. */
export function recordSpans(): { readonly spans: () => SeenSpan[]; readonly reset: () => void } {
  trace.disable();
  context.disable();
  const exporter = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  return { spans: () => exporter.getFinishedSpans().map(seen), reset: () => exporter.reset() };
}

function seen(span: ReadableSpan): SeenSpan {
  const { traceId, spanId } = span.spanContext();
  const links = span.links.map((link) => link.context.spanId);
  return { name: span.name, traceId, spanId, parentId: span.parentSpanContext?.spanId, links, attributes: span.attributes };
}

/** For a process of a test: says that it is ready, and sends its spans when asked. */
export function reportSpans(spans: () => SeenSpan[], ready: object): void {
  process.on('message', () => process.send?.({ spans: spans() }));
  process.on('disconnect', () => process.exit(0));
  process.send?.({ ready });
}
