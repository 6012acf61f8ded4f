// The orders twice in one process, plain and watched, in turns:
// node http-kit-observed.ts plain | metrics | <share of requests that are recorded> | sdk:<share that the SDK's sampler records>
import type { Server } from 'node:http';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, BatchSpanProcessor, ParentBasedSampler, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace-base';
import type { Module } from 'kit';
import { metrics } from 'kit/contrib/metrics';
import { tracing } from 'kit/contrib/tracing';
import { servingInTurns } from '../harness/alternating.ts';
import { ordersApp } from './kit-orders.ts';

const [mode = ''] = process.argv.slice(2);

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

function observers(): readonly Module[] {
  if (mode === 'plain') return [];
  if (mode === 'metrics') return [metrics({ port: 0 })];
  const bySdk = /^sdk:(.+)$/.exec(mode)?.[1];
  recordSpans(bySdk === undefined ? 1 : Number(bySdk));
  return [tracing(bySdk === undefined ? { share: Number(mode) } : {})];
}

async function listen(modules: readonly Module[]): Promise<Server> {
  const app = ordersApp(modules);
  await app.listen({ port: 0 });
  return app.fastify.server;
}

await servingInTurns(await listen([]), await listen(observers()));
