// What watches an application: nothing, an async context alone, metrics, the request log, or traces of a share of its requests.
import { AsyncLocalStorage } from 'node:async_hooks';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, BatchSpanProcessor, ParentBasedSampler, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace-base';
import type { Module } from 'kit';
import { metrics } from 'kit/contrib/metrics';
import { requests } from 'kit/contrib/requests';
import { tracing } from 'kit/contrib/tracing';

/** `plain` | `context` | `metrics` | `requests` | the share of requests that are recorded | `sdk:` and the share that the SDK's sampler records. */
export function observersOf(mode: string): readonly Module[] {
  if (mode === 'plain') return [];
  if (mode === 'context') return [asyncContext()];
  if (mode === 'metrics') return [metrics({ port: 0 })];
  if (mode === 'requests') return [requests()];
  const bySdk = /^sdk:(.+)$/.exec(mode)?.[1];
  recordSpans(bySdk === undefined ? 1 : Number(bySdk));
  return [tracing(bySdk === undefined ? { sampleRatio: Number(mode) } : {})];
}

/** What Node itself takes for telling requests apart in asynchronous code: no tracer costs less. */
function asyncContext(): Module {
  const storage = new AsyncLocalStorage<object>();
  return { name: 'async-context', middleware: [{ name: 'async-context', within: (exchange, _part, work) => storage.run(exchange, work) }] };
}

/** A real SDK whose exporter throws everything away: what an exporter costs is its own. */
function recordSpans(share: number): void {
  const exporter = {
    export: (_spans: unknown, done: (result: { code: number }) => void) => done({ code: 0 }),
    shutdown: () => Promise.resolve(),
    forceFlush: () => Promise.resolve(),
  };
  const sampler = new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) });
  trace.setGlobalTracerProvider(new BasicTracerProvider({ sampler, spanProcessors: [new BatchSpanProcessor(exporter)] }));
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
}
