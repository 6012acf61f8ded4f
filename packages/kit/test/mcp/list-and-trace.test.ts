import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AlwaysOnSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  ParentBasedSampler,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Authenticator } from '../../src/auth/index.ts';
import { mcp } from '../../src/contrib/mcp/index.ts';
import { tracing } from '../../src/contrib/tracing/index.ts';
import { Controller, route, type Route } from '../../src/http/index.ts';
import { hasScopes } from '../../src/permissions/index.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';
import { fetchThrough } from './fetch-through.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER = '00f067aa0ba902b7';
const MANY = 450;
const Ok = z.object({ ok: z.boolean() });

/** `Bearer even` has the scope of every second tool, `Bearer all` that of each. */
const bearer: Authenticator = {
  name: 'bearer',
  challenge: 'Bearer realm="api"',
  securityScheme: { type: 'http', scheme: 'bearer' },
  authenticate({ headers }) {
    const [, name = ''] = /^Bearer (\w+)$/.exec(String(headers['authorization'] ?? '')) ?? [];
    const user = { id: name, username: name, email: null, is_active: true, is_staff: false, is_superuser: false };
    return name === '' ? null : { user, scheme: 'bearer', scopes: name === 'all' ? ['*'] : ['things:even'] };
  },
};

class ThingController extends Controller {
  constructor(count = MANY) {
    super();
    const many = Array.from({ length: count }, (_, index): [string, Route] => [
      `thing${index}`,
      route.get(
        `/${index}`,
        {
          permission: hasScopes(),
          scope: index % 2 === 0 ? 'things:even' : 'things:odd',
          tool: { name: `thing_${index}` },
          summary: `Read the thing ${index}`,
          response: Ok,
        },
        () => ({ ok: true }),
      ),
    ]);
    Object.assign(this, Object.fromEntries(many));
  }
}

let kit: TestApp;
const exporter = new InMemorySpanExporter();

beforeAll(async () => {
  trace.disable();
  context.disable();
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({
      sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
      spanProcessors: [new SimpleSpanProcessor(exporter)],
    }),
  );
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  kit = await testApp({
    authenticators: [bearer],
    // A traceparent is believed of trusted callers only.
    trustedProxies: ['loopback'],
    modules: [mcp(), tracing()],
    mount: { '/v1': { '/things': ThingController } },
  });
});
afterAll(async () => {
  await kit.close();
  trace.disable();
  context.disable();
});

async function ask(who: string, method: string, params: object, of: TestApp = kit) {
  const response = await fetchThrough(of.app)('http://localhost/mcp', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', authorization: `Bearer ${who}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const text = await response.text();
  const line =
    text
      .split('\n')
      .find((each) => each.startsWith('data: '))
      ?.slice(6) ?? text;
  return JSON.parse(line) as {
    result?: { tools: { name: string }[]; nextCursor?: string; isError?: boolean };
    error?: { code: number; message: string };
  };
}

describe('a long list of tools', () => {
  const pages = async (who: string) => {
    const found: string[][] = [];
    let cursor: string | undefined;
    do {
      const { result } = await ask(who, 'tools/list', cursor === undefined ? {} : { cursor });
      found.push(result?.tools.map(({ name }) => name) ?? []);
      cursor = result?.nextCursor;
    } while (cursor !== undefined);
    return found;
  };

  test('is paged in the order of the routes, without gaps or repeats, and each page is the caller’s', async () => {
    const all = Array.from({ length: MANY }, (_, index) => `thing_${index}`);
    const ofAll = await pages('all');
    expect(ofAll.map(({ length }) => length)).toEqual([200, 200, 50]);
    expect(ofAll.flat()).toEqual(all);
    const ofEven = await pages('even');
    expect(ofEven.map(({ length }) => length)).toEqual([200, 25]);
    expect(ofEven.flat()).toEqual(all.filter((_, index) => index % 2 === 0));
  });

  test('is warned of once', () => {
    const warnings = kit.records.filter(({ msg }) => msg.includes('fill the context of an agent'));
    expect(warnings).toHaveLength(1);
  });

  test('has no cursor at a tool that the caller does not have: it is as unknown as one that does not exist', async () => {
    const at = (name: string) => ask('even', 'tools/list', { cursor: Buffer.from(name).toString('base64url') });
    expect((await at('thing_2')).result?.tools[0]?.name).toBe('thing_4');
    expect((await at('thing_3')).error).toEqual((await at('nothing')).error);
    expect((await at('thing_3')).error).toMatchObject({ code: -32602, message: expect.stringContaining('Unknown cursor') });
  });
});

test('a list is warned of above 50 tools', async () => {
  const warnings = async (count: number) => {
    await using app = await testApp({
      authenticators: [bearer],
      modules: [mcp()],
      mount: { '/v1': { '/things': new ThingController(count) } },
    });
    await ask('all', 'tools/list', {}, app);
    return app.records.filter(({ msg }) => msg.includes('more than 50 tools')).length;
  };
  expect([await warnings(50), await warnings(51)]).toEqual([0, 1]);
});

describe('a list of few tools with long descriptions', () => {
  const warnings = async (length: number) => {
    class LongController extends Controller {
      one = route.get(
        '/1',
        { permission: hasScopes(), scope: 'a:b', tool: { description: `Reads ${'ä'.repeat(length)}.` }, response: Ok },
        () => ({ ok: true }),
      );
      two = route.get(
        '/2',
        { permission: hasScopes(), scope: 'a:b', tool: { description: `Reads ${'ä'.repeat(length)}.` }, response: Ok },
        () => ({ ok: true }),
      );
    }
    await using app = await testApp({ authenticators: [bearer], modules: [mcp()], mount: { '/v1': { '/long': LongController } } });
    for (const _ of [1, 2]) await ask('all', 'tools/list', {}, app);
    return app.records.filter(({ msg }) => msg.includes('64 kB')).length;
  };

  test('is warned of above 64 kB, once', async () => {
    // Two bytes each.
    expect(await warnings(16_500)).toBe(1);
    expect(await warnings(15_500)).toBe(0);
  });
});

test('the trace of a call goes on where the client’s is, and audit and log of the operation have it', async () => {
  const call = (meta: object) => ask('all', 'tools/call', { name: 'thing_1', arguments: {}, _meta: meta });
  exporter.reset();
  expect((await call({ traceparent: `00-${TRACE}-${CALLER}-01` })).result?.isError).toBeUndefined();
  const ofRoute = () => exporter.getFinishedSpans().filter(({ name }) => name.includes('/v1/things/1'));
  expect(ofRoute().map((span) => [span.spanContext().traceId, span.parentSpanContext?.spanId])).toEqual([[TRACE, CALLER]]);
  exporter.reset();
  for (const traceparent of ['nonsense', '', 7]) await call({ traceparent });
  expect(ofRoute()).toHaveLength(3);
  for (const span of ofRoute()) expect(span.spanContext().traceId).not.toBe(TRACE);
});
