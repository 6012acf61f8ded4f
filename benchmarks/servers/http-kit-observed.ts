// The same orders, watched: node http-kit-observed.ts metrics | <share of requests that are recorded>
import type { AddressInfo } from 'node:net';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, BatchSpanProcessor, ParentBasedSampler, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace-base';
import { metrics } from 'kit/contrib/metrics';
import { tracing } from 'kit/contrib/tracing';
import { serving } from '../harness/server-process.ts';
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

if (mode !== 'metrics') recordSpans(Number(mode));
const app = ordersApp([mode === 'metrics' ? metrics({ port: 0 }) : tracing()]);
await app.listen({ port: 0 });
serving((app.fastify.server.address() as AddressInfo).port);
