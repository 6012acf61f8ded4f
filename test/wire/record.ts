import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import process from 'node:process';
import type { LightMyRequestResponse } from 'fastify';
import { afterAll, expect, vi } from 'vitest';
import type * as Creation from '../../packages/kit/src/app/assemble/create-app.ts';
import type { App } from '../../packages/kit/src/app/declare/module.ts';
import { observeQueries, type QueryEvent } from '../../packages/kit/src/db/engine/query-observer.ts';
import type { RecordedExchange } from './exchange.ts';
import { Normaliser } from './normalise.ts';
import { planOf } from './plan-of.ts';

// Runs before every test file when KIT_RECORD names a folder. Every request that a test injects is written there with its response, the
// statements it needed and the indexes they use: `node scripts/wire-diff.ts before after` compares two such folders.

interface Raw {
  readonly test: string;
  readonly request: RecordedExchange['request'];
  response?: RecordedExchange['response'];
  readonly statements: string[];
}

// Files share processes: an app that was loaded for an earlier file still reports to the mock of then.
const place = globalThis as { kitRecorded?: Raw[] };
place.kitRecorded = [];

vi.mock('../../packages/kit/src/app/assemble/create-app.ts', async (original) => {
  const real = await original<typeof Creation>();
  const createApp: typeof Creation.createApp = (options) => recorded(real.createApp(options));
  return { ...real, createApp };
});

function recorded(app: App): App {
  const inject = app.inject.bind(app);
  Object.assign(app, {
    inject: async (asked: Parameters<App['inject']>[0]) => {
      const raw: Raw = { test: expect.getState().currentTestName ?? 'before the tests', request: requestOf(asked), statements: [] };
      place.kitRecorded?.push(raw);
      const queries: QueryEvent[] = [];
      const response = await observeQueries(
        (event) => queries.push(event),
        () => inject(asked),
      );
      raw.response = responseOf(response);
      for (const query of queries) raw.statements.push(await planOf(app, query));
      return response;
    },
  });
  return app;
}

function requestOf(asked: Parameters<App['inject']>[0]): Raw['request'] {
  if (typeof asked === 'string') return { method: 'GET', url: asked, headers: {}, body: null };
  const { method = 'GET', url, path, query, headers = {}, payload, body } = asked;
  const search =
    query === undefined ? '' : `?${typeof query === 'string' ? query : new URLSearchParams(query as Record<string, string>).toString()}`;
  const target = url ?? path ?? '/';
  const address = typeof target === 'string' ? target : (target.pathname ?? '/');
  return { method: method.toUpperCase(), url: `${address}${search}`, headers: compared(headers), body: bodyOf(payload ?? body) };
}

function responseOf(response: LightMyRequestResponse): NonNullable<Raw['response']> {
  return { status: response.statusCode, headers: compared(response.headers), body: bodyOf(response.payload) };
}

/** Of the connection or of the moment, and the credentials of tests. */
const NOT_COMPARED =
  /^(?:date|connection|keep-alive|content-length|user-agent|host|authorization|cookie|x-request-id|x-kit-test-caller|server-timing|x-ratelimit-reset|ratelimit.*)$/i;

function compared(headers: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(headers)
      .filter(([name, value]) => !NOT_COMPARED.test(name) && value !== undefined)
      .map(([name, value]) => [name.toLowerCase(), /etag|if-match|if-none-match/i.test(name) ? '<tag>' : value])
      .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
  );
}

function bodyOf(payload: unknown): unknown {
  if (payload === undefined || payload === '') return null;
  if (payload instanceof Uint8Array) return `<${payload.length} bytes>`;
  if (typeof payload !== 'string') return payload;
  try {
    return JSON.parse(payload);
  } catch {
    return payload.slice(0, 20_000);
  }
}

afterAll(() => {
  const recordings = process.env['KIT_RECORD'];
  const all = place.kitRecorded?.splice(0) ?? [];
  const { testPath } = expect.getState();
  if (recordings === undefined || testPath === undefined || all.length === 0) return;
  const normalisers = new Map<string, Normaliser>();
  const lines = all.flatMap(({ test, request, response, statements }) => {
    if (response === undefined) return [];
    const normaliser = normalisers.get(test) ?? new Normaliser();
    normalisers.set(test, normaliser);
    const exchange: RecordedExchange = {
      test,
      request: normaliser.value(request) as RecordedExchange['request'],
      response: normaliser.value(response) as RecordedExchange['response'],
      statements,
    };
    return [JSON.stringify(exchange)];
  });
  const root = resolve(import.meta.dirname, '../..');
  const folder = resolve(root, recordings);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${relative(root, testPath).replaceAll('/', '__')}.jsonl`), `${lines.join('\n')}\n`);
});
