import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import {
  AlwaysOnSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  ParentBasedSampler,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FILES, SERVER_TOML, startServer, TOKEN, writeFiles } from '../../test/running-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { formatEntry } from '../audit/json-lines.ts';
import { readServerConfig, type ServerConfig } from '../config/config.ts';
import { openTracing } from './open-tracing.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const VALID = { traceparent: `00-${TRACE}-${SPAN}-01` };
const TRACED_TOML = SERVER_TOML.replace('[server]', '[server]\ntracing = true');

const exporter = new InMemorySpanExporter();
let provider: BasicTracerProvider;

beforeEach(() => {
  exporter.reset();
  provider = new BasicTracerProvider({
    sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  });
  trace.setGlobalTracerProvider(provider);
});

afterEach(() => {
  trace.disable();
});

test('a valid traceparent of an authenticated caller is recorded as trace_id, whatever the outcome', async () => {
  const running = await startServer();
  for (const path of ['/billing/prod', '/billing/prod/status', '/metrics', '/orders/prod', '/b%20d/prod']) {
    await running.ask(path, { headers: VALID });
    expect([path, running.audit.at(-1)!.trace_id]).toEqual([path, TRACE]);
  }
  expect(exporter.getFinishedSpans()).toEqual([]);
});

test('without a valid traceparent the entry has no trace_id, and its line no seventh field', async () => {
  const running = await startServer();
  for (const traceparent of [
    '',
    `00-${TRACE}-${SPAN}`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    '"},{',
  ]) {
    await running.ask('/billing/prod', { headers: { traceparent } });
  }
  await running.ask('/billing/prod');
  expect(running.audit).toHaveLength(6);
  for (const entry of running.audit) {
    expect(Object.keys(JSON.parse(formatEntry(entry)) as object)).toEqual([
      'time',
      'caller',
      'application',
      'profile',
      'endpoint',
      'outcome',
      'generation',
    ]);
  }
});

test('a stranger puts nothing into the log: without a credential the traceparent is not recorded', async () => {
  const running = await startServer();
  for (const [path, options] of [
    ['/billing/prod', { token: null }],
    ['/billing/prod', { token: `${TOKEN}x` }],
    ['/healthz', { token: null }],
    ['/readyz', {}],
    ['/no/such/path/at/all', {}],
    ['/billing/prod', { method: 'POST' }],
    [`/${'a'.repeat(9000)}`, {}],
  ] as const) {
    await running.ask(path, { headers: VALID, ...options });
    expect([path, running.audit.at(-1)!.trace_id]).toEqual([path, undefined]);
  }
});

test('an entry is the same JSON object as its line', async () => {
  const running = await startServer();
  await running.ask('/billing/prod', { headers: VALID });
  await running.ask('/billing/prod');
  for (const entry of running.audit) expect(formatEntry(entry)).toBe(JSON.stringify(entry));
});

test('with tracing each request of a section is a span that continues the caller trace and says what the audit line says', async () => {
  const running = await startServer({ toml: TRACED_TOML });
  await running.ask('/billing/prod/explain/password', { headers: VALID });
  const [span] = exporter.getFinishedSpans();
  expect(span).toMatchObject({
    name: 'GET /{application}/{profile}/explain/{path}',
    kind: SpanKind.SERVER,
    parentSpanContext: { traceId: TRACE, spanId: SPAN, isRemote: true },
    status: { code: SpanStatusCode.UNSET },
  });
  expect(span!.attributes).toEqual({
    'http.request.method': 'GET',
    'http.route': '/{application}/{profile}/explain/{path}',
    'http.response.status_code': 200,
    'config.outcome': 'served',
    'config.caller': 'billing-service',
    'config.application': 'billing',
    'config.profile': 'prod',
    'config.generation': 1,
  });
  expect(span!.spanContext().traceId).toBe(TRACE);
  expect(running.audit.at(-1)!.trace_id).toBe(TRACE);
  const [seconds, nanoseconds] = span!.duration;
  expect(seconds * 1e9 + nanoseconds).toBeGreaterThan(0);
});

test('without a traceparent a span starts a trace of its own, and the audit line names it', async () => {
  const running = await startServer({ toml: TRACED_TOML });
  await running.ask('/billing/prod');
  const [span] = exporter.getFinishedSpans();
  expect(span!.parentSpanContext).toBeUndefined();
  expect(running.audit.at(-1)!.trace_id).toBe(span!.spanContext().traceId);
});

test('a stranger neither joins a trace nor decides about sampling', async () => {
  const running = await startServer({ toml: TRACED_TOML });
  for (const flags of ['00', '01'])
    await running.ask('/billing/prod', { token: null, headers: { traceparent: `00-${TRACE}-${SPAN}-${flags}` } });
  const spans = exporter.getFinishedSpans();
  expect(spans.map((span) => [span.name, span.attributes['config.outcome'], span.parentSpanContext])).toEqual([
    ['GET /{application}/{profile}', 'unauthenticated', undefined],
    ['GET /{application}/{profile}', 'unauthenticated', undefined],
  ]);
  for (const span of spans) expect(span.spanContext().traceId).not.toBe(TRACE);
  expect(JSON.stringify(running.audit)).not.toContain(TRACE);
});

test('a caller that is authenticated decides about sampling', async () => {
  const running = await startServer({ toml: TRACED_TOML });
  await running.ask('/billing/prod', { headers: { traceparent: `00-${TRACE}-${SPAN}-00` } });
  expect(exporter.getFinishedSpans()).toEqual([]);
  expect(running.audit.at(-1)!.trace_id).toBe(TRACE);
});

test('no span holds a path as it was sent, a method of a stranger or a value', async () => {
  const running = await startServer({ toml: TRACED_TOML });
  await running.ask('/canary/prod/explain/canary?canary=1', { headers: VALID });
  await running.ask('/canary%20x/prod', { headers: VALID });
  await running.ask('/canary', { token: null });
  await running.ask('/billing/prod', { method: 'PURGE' });
  await running.ask('/healthz', { token: null });
  const spans = exporter.getFinishedSpans();
  expect(spans.map((span) => span.name)).toEqual([
    'GET /{application}/{profile}/explain/{path}',
    'GET /{application}/{profile}',
    'GET',
    '_OTHER /{application}/{profile}',
  ]);
  expect(spans.map((span) => span.attributes['config.application'])).toEqual(['canary', undefined, undefined, undefined]);
  const others = spans.map((span) => Object.entries(span.attributes).filter(([name]) => name !== 'config.application'));
  expect(JSON.stringify(others)).not.toMatch(/canary|PURGE|correct horse/);
});

test('a span of a refused stream is an error, and an SDK that throws fails no request', async () => {
  const running = await startServer({ toml: TRACED_TOML.replace('[server]', '[server]\nmax_stream_connections = 1') });
  const stream = running.ask('/billing/prod/stream');
  const refused = await running.ask('/billing/prod/stream');
  expect(refused.status).toBe(503);
  expect(exporter.getFinishedSpans().map((span) => [span.attributes['config.outcome'], span.status.code])).toEqual([
    ['served', SpanStatusCode.UNSET],
    ['unavailable', SpanStatusCode.ERROR],
  ]);
  trace.disable();
  trace.setGlobalTracerProvider({
    getTracer: () => {
      throw new Error('an SDK that is broken');
    },
  });
  expect((await running.ask('/billing/prod', { headers: VALID })).status).toBe(200);
  await running.server.stop();
  await stream;
});

test('tracing without OpenTelemetry installed refuses the start with the remedy', async () => {
  const folder = await temporaryFolder();
  await writeFiles(folder, { ...FILES, 'server.toml': TRACED_TOML });
  const { config } = readServerConfig(join(folder, 'server.toml'), {});
  const missing = await openTracing(config!, () => Promise.reject(new Error('ERR_MODULE_NOT_FOUND')));
  expect(missing).toEqual({
    problem: { key: 'server.tracing', message: expect.stringContaining('needs the package @opentelemetry/api') as string },
  });
});

test('without the key OpenTelemetry is not loaded', async () => {
  const loaded = await openTracing({ tracing: false } as ServerConfig, () => {
    throw new Error('was loaded');
  });
  expect(loaded).toEqual({ recordSpan: undefined });
});
