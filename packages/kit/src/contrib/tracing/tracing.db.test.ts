import { Readable } from 'node:stream';
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import * as z from 'zod';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { Controller } from '../../http/compile/controller.ts';
import { raw } from '../../http/declare/raw.ts';
import { route } from '../../http/declare/route.ts';
import { requestLog } from '../../middleware/request-log.ts';
import { activeTracing, inSpan } from '../../observe/tracing.ts';
import { allowAny, isAuthenticated } from '../../permissions/built-ins.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp, type TestAppOptions } from '../../testing/test-app.ts';
import { tracing } from './module.ts';
import { withoutValues } from './statement-spans.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER = '00f067aa0ba902b7';
const Ok = z.strictObject({ ok: z.boolean() });

let exporter: InMemorySpanExporter;

/** Roots as the sampler says; inside a trace, as its parent was decided. */
function useSdk(root: Sampler): void {
  removeSdk();
  exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({
    sampler: new ParentBasedSampler({ root }),
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  });
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
}

function removeSdk(): void {
  trace.disable();
  context.disable();
}

beforeEach(() => useSdk(new AlwaysOnSampler()));
afterEach(removeSdk);

const authenticator: Authenticator = {
  name: 'key',
  securityScheme: { type: 'apiKey', in: 'header', name: 'X-Key' },
  async authenticate(request) {
    if (request.headers['x-key'] === undefined) return null;
    await request.db.query('select 1 as authenticated');
    const user = { id: 'u1', username: 'ada', email: null, is_active: true, is_staff: false, is_superuser: false };
    return { user, scheme: 'key', scopes: null };
  },
};

class ThingController extends Controller {
  make = route.post(
    '/:token',
    { params: z.object({ token: z.string() }), body: Ok, permission: isAuthenticated, response: Ok },
    async ({ db, log }) => {
      await db.query('select $1 as one', ['private-value']);
      await db.transaction((tx) => tx.query("select 'literal-value' as two where 42 = 42"));
      log.info('from the handler');
      return { ok: true };
    },
  );
  missing = route.get('/missing', { permission: allowAny, response: Ok }, () => {
    throw coreErrors.not_found();
  });
  events = route.stream('/events', { permission: allowAny, response: Ok }, async function* ({ db }) {
    for (let n = 0; n < 3; n += 1) {
      await db.query('select 1 as event');
      yield { data: { ok: true } };
    }
  });
  rows = route.get('/rows', { permission: allowAny, response: raw('text/plain') }, ({ db }) =>
    Readable.from(
      (async function* () {
        // More than a connection takes at once: the later statements run when the client has read the first.
        for (let n = 0; n < 5; n += 1) {
          await db.query('select 1 as row');
          yield Buffer.alloc(1_000_000, 120);
        }
      })(),
      { objectMode: false },
    ),
  );
  broken = route.get('/broken', { permission: allowAny, response: Ok }, async ({ db }) => {
    await db.query('select * from nowhere');
    return { ok: true };
  });
}

const start = (options: Partial<TestAppOptions> = {}) =>
  testApp({
    modules: [tracing()],
    authenticators: [authenticator],
    middleware: [requestLog()],
    mount: { '/v1': { '/things': ThingController } },
    ...options,
  });
const post = (headers: Record<string, string> = {}) => ({
  method: 'POST' as const,
  url: '/v1/things/t0ken-in-path',
  payload: { ok: true },
  headers: { 'x-key': '1', ...headers },
});
const spans = () => exporter.getFinishedSpans();
const named = (name: string | RegExp) => spans().filter((span) => (typeof name === 'string' ? span.name === name : name.test(span.name)));
const hrTimeMs = (time: readonly [number, number] | undefined) => (time?.[0] ?? 0) * 1000 + (time?.[1] ?? 0) / 1e6;
const parentOf = (span: ReadableSpan | undefined) => span?.parentSpanContext?.spanId;

describeDatabases('a trace of a request', (database) => {
  test('has spans for request, permission, handler and each statement, in one tree, with names of the semantic conventions', async () => {
    await using app = await start({ database: database.db });
    expect((await app.inject(post())).statusCode).toBe(200);
    const [request] = named('POST /v1/things/:token');
    const [permission] = named('permission isAuthenticated');
    const [handler] = named('handler ThingController.make');
    const statements = named(/^SELECT/);
    expect(request?.kind).toBe(SpanKind.SERVER);
    expect(request?.attributes).toMatchObject({
      'http.request.method': 'POST',
      'http.route': '/v1/things/:token',
      'http.response.status_code': 200,
      'url.path': '/v1/things/[masked]',
      'url.scheme': 'http',
    });
    expect([parentOf(permission), parentOf(handler)]).toEqual([request?.spanContext().spanId, request?.spanContext().spanId]);
    // Authentication belongs to the request, the others to the handler.
    expect(statements.map(parentOf)).toEqual([request, handler, handler].map((span) => span?.spanContext().spanId));
    expect(statements[1]?.kind).toBe(SpanKind.CLIENT);
    expect(statements[1]?.attributes).toMatchObject({
      'db.system.name': database.dialect === 'postgres' ? 'postgresql' : 'sqlite',
      'db.operation.name': 'SELECT',
      'db.namespace': 'default',
    });
    expect(new Set(spans().map((span) => span.spanContext().traceId)).size).toBe(1);
  });

  test('statements show their text without values', async () => {
    await using app = await start({ database: database.db });
    await app.inject(post());
    const texts = named(/^SELECT/).map(({ attributes }) => String(attributes['db.query.text']));
    expect(texts[1]).toMatch(/^select (\$1|\?\d*) as one$/);
    expect(texts[2]).toBe('select ? as two where ? = ?');
    expect(JSON.stringify(spans().map(({ name, attributes, events, status }) => [name, attributes, events, status]))).not.toMatch(
      /private-value|literal-value|t0ken/,
    );
  });

  test('a failing statement and a 500 are errors; a 404 is not', async () => {
    await using app = await start({ database: database.db });
    await app.inject('/v1/things/broken');
    await app.inject('/v1/things/missing');
    const [broken] = named('GET /v1/things/broken');
    const [missing] = named('GET /v1/things/missing');
    const [statement] = named('SELECT nowhere');
    expect([broken?.status.code, missing?.status.code, statement?.status.code]).toEqual([
      SpanStatusCode.ERROR,
      SpanStatusCode.UNSET,
      SpanStatusCode.ERROR,
    ]);
    expect(missing?.attributes['error.type']).toBe('not_found');
    expect(broken?.attributes['error.type']).toBe('internal_error');
    expect(JSON.stringify(spans().map(({ events, status }) => [events, status]))).not.toContain('nowhere');
  });

  test('what a stream of events does is inside its handler, which lasts until the last event', async () => {
    await using app = await start({ database: database.db });
    expect((await app.inject('/v1/things/events')).body.match(/^data/gm)).toHaveLength(3);
    const [handler] = named('handler ThingController.events');
    expect(named(/^SELECT/).map(parentOf)).toEqual(Array.from({ length: 3 }, () => handler?.spanContext().spanId));
    const last = named(/^SELECT/).at(-1)?.endTime ?? [0, 0];
    expect(hrTimeMs(handler?.endTime)).toBeGreaterThanOrEqual(hrTimeMs(last) - 1);
  });

  test('what a body does while the client reads it belongs to its request', async () => {
    await using app = await start({ database: database.db });
    const origin = await app.listen();
    expect((await (await fetch(`${origin}/v1/things/rows`)).arrayBuffer()).byteLength).toBe(5_000_000);
    await vi.waitUntil(() => named('GET /v1/things/rows').length === 1, { timeout: 300_000 });
    const [request] = named('GET /v1/things/rows');
    expect(named(/^SELECT/).map(parentOf)).toEqual(Array.from({ length: 5 }, () => request?.spanContext().spanId));
  });

  test('statements: false leaves the statements out', async () => {
    await using app = await start({ database: database.db, modules: [tracing({ statements: false })] });
    await app.inject(post());
    expect(named(/^SELECT/)).toEqual([]);
    expect(named(/^POST/)).toHaveLength(1);
  });
});

describe('the trace of the caller', () => {
  const from = (flags: string) => post({ traceparent: `00-${TRACE}-${CALLER}-${flags}` });
  const root = () => named(/^POST/)[0];

  test('goes on: same trace, child of the caller’s span', async () => {
    await using app = await start();
    await app.inject(from('01'));
    expect(root()?.spanContext().traceId).toBe(TRACE);
    expect(parentOf(root())).toBe(CALLER);
    expect(root()?.parentSpanContext?.isRemote).toBe(true);
  });

  test('a stranger cannot have everything recorded', async () => {
    useSdk(new AlwaysOffSampler());
    await using app = await start();
    await app.inject(from('01'));
    expect(spans()).toEqual([]);
  });

  test('a stranger cannot have nothing recorded', async () => {
    await using app = await start();
    await app.inject(from('00'));
    expect(root()?.spanContext().traceId).toBe(TRACE);
    expect(spans().some(({ name }) => name === 'sampling decision')).toBe(false);
  });

  test('a trusted proxy decides', async () => {
    useSdk(new AlwaysOffSampler());
    await using app = await start({ trustedProxies: ['loopback'] });
    await app.inject(from('01'));
    expect(root()?.spanContext().traceId).toBe(TRACE);
    exporter.reset();
    await app.inject(from('00'));
    expect(spans()).toEqual([]);
  });

  test.each([
    'garbage',
    `ff-${TRACE}-${CALLER}-01`,
    `00-${'0'.repeat(32)}-${CALLER}-01`,
    `00-${TRACE}-${CALLER}-01,00-${TRACE}-${CALLER}-01`,
  ])('what is not a traceparent begins a trace of its own: %s', async (traceparent) => {
    await using app = await start();
    expect((await app.inject(post({ traceparent }))).statusCode).toBe(200);
    expect(root()?.parentSpanContext).toBeUndefined();
    expect(root()?.spanContext().traceId).not.toBe(TRACE);
  });

  test('methods and paths of strangers do not become names', async () => {
    await using app = await start();
    await app.inject('/nowhere/at/all?x=1');
    await app.inject({ method: 'PROPFIND' as 'GET', url: '/v1/things/1' });
    expect(spans().map(({ name }) => name)).toEqual(['GET', 'HTTP']);
    expect(spans()[1]?.attributes).toMatchObject({ 'http.request.method': '_OTHER', 'http.request.method_original': 'PROPFIND' });
  });
});

describe('the share of requests that is recorded', () => {
  const from = (flags: string) => post({ traceparent: `00-${TRACE}-${CALLER}-${flags}` });
  const sharing = (share: number, options: Partial<TestAppOptions> = {}) =>
    start({ modules: [tracing({ sampleRatio: share })], ...options });

  test('none of 0, and the SDK is not asked; all of 1', async () => {
    await using none = await sharing(0);
    for (let n = 0; n < 20; n += 1) await none.inject(n % 2 === 0 ? post() : from('01'));
    expect(spans()).toEqual([]);
    await none.close();
    await using all = await sharing(1);
    await all.inject(post());
    expect(named(/^POST/)).toHaveLength(1);
  });

  test('some of a half, each as a whole or not at all', async () => {
    await using app = await sharing(0.5);
    for (let n = 0; n < 100; n += 1) await app.inject(post());
    const requests = named(/^POST/).length;
    // Fewer than ten or more than ninety of a hundred happen once in 10^17 runs.
    expect(requests).toBeGreaterThan(10);
    expect(requests).toBeLessThan(90);
    expect([named(/^permission/).length, named(/^handler/).length, named(/^SELECT/).length]).toEqual([requests, requests, 3 * requests]);
  });

  test('a trusted proxy still decides', async () => {
    await using app = await sharing(0, { trustedProxies: ['loopback'] });
    await app.inject(from('01'));
    expect(named(/^POST/)[0]?.spanContext().traceId).toBe(TRACE);
  });

  test('a request that is not recorded has one trace in its log, the caller’s if it sent one, and spans of its own code join it', async () => {
    let inner: unknown;
    class OwnSpans extends Controller {
      own = route.get('/', { permission: allowAny, response: Ok }, ({ log }) => {
        log.info('from the handler');
        const span = trace.getTracer('own').startSpan('own');
        inner = { ...span.spanContext(), recording: span.isRecording() };
        span.end();
        return { ok: true };
      });
    }
    await using app = await sharing(0, { mount: { '/': { '/own': OwnSpans } } });
    const idsOf = async (headers: Record<string, string>) => {
      app.records.length = 0;
      await app.inject({ url: '/own', headers });
      await vi.waitUntil(() => app.records.filter(({ request_id }) => request_id !== undefined).length >= 2, { timeout: 300_000 });
      return new Set(app.records.filter(({ request_id }) => request_id !== undefined).map(({ trace_id }) => trace_id));
    };
    const own = await idsOf({});
    expect([...own]).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)]);
    expect(inner).toMatchObject({ traceId: [...own][0], recording: false });
    expect([...(await idsOf({ traceparent: `00-${TRACE}-${CALLER}-01` }))]).toEqual([TRACE]);
    expect(spans()).toEqual([]);
  });

  test('statements are measured only for requests that are recorded', async () => {
    const measured = async (share: number) => {
      // The request log counts statements too.
      await using app = await sharing(share, { middleware: [] });
      await app.app.ready();
      let count = 0;
      // Wants nothing by itself: it hears what was measured for others.
      app.app.db.observe({ onQuery: () => (count += 1), wantsQuery: () => false });
      await app.inject(post());
      return count;
    };
    expect([await measured(0), await measured(1)]).toEqual([0, 3]);
  });
});

describe('ids in the log', () => {
  test('every record of a request has the ids of its trace, whether it is recorded or not', async () => {
    for (const sampler of [new AlwaysOnSampler(), new AlwaysOffSampler()]) {
      useSdk(sampler);
      await using app = await start();
      await app.inject(post({ traceparent: `00-${TRACE}-${CALLER}-01` }));
      await app.close();
      const records = app.records.filter(({ request_id }) => request_id !== undefined);
      expect(records.length).toBeGreaterThanOrEqual(2);
      for (const record of records)
        expect(record).toMatchObject({ trace_id: TRACE, span_id: expect.stringMatching(/^[0-9a-f]{16}$/) as unknown });
    }
  });
});

describe('without it', () => {
  test('an application without tracing() makes no spans, and one that is closed leaves nothing behind', async () => {
    await using traced = await start();
    await traced.close();
    expect(activeTracing()).toBeUndefined();
    await using app = await start({ modules: [] });
    await app.inject(post({ traceparent: `00-${TRACE}-${CALLER}-01` }));
    expect(spans()).toEqual([]);
    expect(app.records.every(({ trace_id }) => trace_id === undefined)).toBe(true);
  });

  test('without an SDK everything works and nothing is recorded', async () => {
    removeSdk();
    await using app = await start();
    expect((await app.inject(post())).statusCode).toBe(200);
    expect(inSpan('work', { parent: null }, () => 7)).toBe(7);
  });
});

test.each([
  ["select * from t where a = 'x''y' and b = 12.5e3", 'select * from t where a = ? and b = ?'],
  ['select $1, ?2, col1 from t2 limit 10', 'select $1, ?2, col1 from t2 limit ?'],
  ["insert into t values (e'a\\'b', $tag$ secret $tag$, -7, x'ff')", 'insert into t values (?, ?, ?, ?)'],
  ['select "na\'me" from "t1"', 'select "na\'me" from "t1"'],
])('literals are not shown: %s', (sql, shown) => {
  expect(withoutValues(sql)).toBe(shown);
});
