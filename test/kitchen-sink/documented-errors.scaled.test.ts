import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type App, migrateApp } from 'kit';
import { accountsOf, createUser } from 'kit/contrib/accounts';
import { createApiKey } from 'kit/contrib/apikeys';
import { openApiDocument } from '../../packages/kit/src/openapi/document.ts';
import { ERRORS_ANYWHERE } from '../../packages/kit/src/openapi/errors-of-route.ts';
import { sample } from '../../packages/kit/src/testing/sample/sample.ts';
import { wholeDocument } from '../../packages/kit/test/whole-document.ts';
import { kitchenSink } from './app.ts';
import { scaled } from '../provision/scale.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- a document of any shape
type Json = any;
const PASSWORD = 'correct horse battery staple';
const ID = '00000000-0000-7000-8000-000000000000';

let app: App;
let document: Json;
const folder = mkdtempSync(join(tmpdir(), 'kit-sink-'));
const keys: Record<string, string> = {};
const session = { cookie: '', token: '' };
/** Of a user whose sessions nothing here ends, and who need not log in again. */
const quietSession = { cookie: '', token: '' };
/** Of a member of staff without a second factor. */
const staffSession = { cookie: '', token: '' };

beforeAll(async () => {
  app = kitchenSink({ folder, database: `sqlite:${join(folder, 'sink.db')}` });
  await migrateApp(app);
  await app.ready();
  document = wholeDocument(openApiDocument(app.routes, { title: 'x', version: '1', spec: '3.2' }));
  const management = accountsOf(app.db).management('test');
  for (const username of ['ann', 'sue', 'eve']) {
    const user = await createUser(app.db, { username, password: PASSWORD, is_staff: username === 'sue' }, management);
    keys[username] = (await createApiKey(app.db, { user, name: 'all', scopes: ['*'] })).raw;
    keys[`${username}-none`] = (await createApiKey(app.db, { user, name: 'none', scopes: ['other:read'] })).raw;
  }
  for (const [login, opened] of [
    ['ann', session],
    ['sue', staffSession],
    ['eve', quietSession],
  ] as const) {
    const response = await app.inject({ method: 'POST', url: '/v1/account/login', payload: { login, password: PASSWORD } });
    opened.cookie = String(response.headers['set-cookie']).split(';')[0]!;
    opened.token = response.json<{ csrf_token: string }>().csrf_token;
  }
});
afterAll(async () => {
  await app.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Attempt {
  readonly headers: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly payload?: string;
}

const LARGE_BODIES = [`[${'{"a":1},'.repeat(10_100)}{}]`, `[${'0,'.repeat(50_000)}0]`];

/** Requests that are refused for as many reasons as a caller can give. Large bodies are most of the time: for some operations only. */
function attemptsOf(operation: Json, hasLarge: boolean): Attempt[] {
  const type = Object.keys(operation.requestBody?.content ?? {})[0];
  const schema = operation.requestBody?.content[type ?? '']?.schema;
  const whole = schema === undefined ? undefined : { ...schema, components: document.components };
  const body = type === undefined ? undefined : type === 'application/json' ? JSON.stringify(sample(whole, { seed: 7 })) : 'text';
  const good = (key: string): Attempt => ({
    headers: { 'x-api-key': keys[key]!, ...(type === undefined ? {} : { 'content-type': type }) },
    ...(body === undefined ? {} : { payload: body }),
  });
  const sent = good('ann');
  const ofSession = ({ cookie, token }: typeof session) => ({
    ...(type === undefined ? {} : { 'content-type': type }),
    cookie,
    'x-csrf-token': token,
  });
  const json = { ...sent.headers, 'content-type': 'application/json' };
  return [
    { ...sent, headers: {} },
    { ...sent, headers: { ...sent.headers, 'x-api-key': 'kit_wrong' } },
    { ...sent, headers: { authorization: 'Bearer kit_wrong' } },
    good('ann-none'),
    good('sue-none'),
    sent,
    good('sue'),
    { ...sent, query: 'surely_unknown=1' },
    { ...sent, headers: { ...sent.headers, 'if-match': '"999"', 'if-none-match': '"x"' } },
    { ...sent, headers: { ...sent.headers, 'idempotency-key': 'a b' } },
    { ...sent, headers: { ...sent.headers, 'accept-version': '99' } },
    { ...sent, headers: { ...sent.headers, 'content-type': 'application/xml' }, payload: '<a/>' },
    { ...sent, headers: json, payload: '{"a":' },
    { ...sent, headers: json, payload: `${'['.repeat(40)}${']'.repeat(40)}` },
    ...(hasLarge ? LARGE_BODIES.map((payload) => Object.assign({}, sent, { headers: json, payload })) : []),
    { ...sent, headers: json, payload: '{"surely_unknown":1}' },
    { ...sent, headers: { ...(body === undefined ? {} : { 'content-type': type! }), cookie: session.cookie } },
    { ...sent, headers: ofSession(staffSession) },
    { ...sent, headers: ofSession(session) },
  ];
}

const ANYWHERE = new Set(ERRORS_ANYWHERE.map(({ code }) => code));
/** A body that is not JSON. */
const isRaw = (operation: Json): boolean =>
  operation.requestBody !== undefined && operation.requestBody.content['application/json'] === undefined;

/** Documented where a body has its own types and limits. */
const OF_BODIES = new Set(['malformed_body', 'body_too_large', 'unsupported_media_type']);
const OF_ALL = new Set(['type', 'title', 'status', 'detail', 'code', 'request_id', 'errors']);

/** The codes that the response's schema allows: null for any. */
function codesOf(response: Json): readonly string[] | null {
  const parts: Json[] = response?.content?.['application/problem+json']?.schema?.allOf ?? [];
  return parts.find((part) => part.properties?.code?.enum !== undefined)?.properties.code.enum ?? null;
}

/** Members that the response's schema has beside those of all problems. */
function membersOf(response: Json): Set<string> {
  const parts: Json[] = response?.content?.['application/problem+json']?.schema?.allOf ?? [];
  const resolved = parts.map((part) => (part.$ref === undefined ? part : document.components.schemas[part.$ref.split('/').at(-1)]));
  return new Set(resolved.flatMap((part) => Object.keys(part.properties ?? {})));
}

test('every refusal of the running server is documented for its operation: status, code and members', { timeout: 300_000 }, async () => {
  const faults = new Set<string>();
  const seen = new Set<string>();
  let count = 0;
  // Those of the account end sessions: last.
  const isOfAccount = (path: string) => Number(path.startsWith('/v1/account/'));
  const paths = Object.entries<Json>(document.paths).toSorted(([a], [b]) => isOfAccount(a) - isOfAccount(b));
  for (const [path, item] of paths)
    for (const [method, operation] of Object.entries<Json>(item)) {
      // It would end the session of the others.
      if (operation.operationId === 'account_logout') continue;
      for (const { headers, query, payload } of attemptsOf(operation, count++ % scaled(10, 1) === 0)) {
        const url = `${path.replaceAll(/\{\w+\}/g, ID)}${query === undefined ? '' : `?${query}`}`;
        const media = Object.keys(operation.responses[200]?.content ?? {});
        const isStream = media.join() === 'text/event-stream';
        if (isStream && headers['x-api-key'] === keys['ann']) continue;
        const response = await app.inject({
          method: method.toUpperCase() as 'GET',
          url,
          headers,
          ...(payload === undefined ? {} : { payload }),
        });
        if (response.statusCode < 400) continue;
        const problem = response.json<Record<string, unknown> & { code: string }>();
        const documented = operation.responses[response.statusCode];
        const where = `${operation.operationId} ${response.statusCode} ${problem.code}`;
        seen.add(problem.code);
        if (response.statusCode >= 500) faults.add(`${where} ${String(problem['detail'])}`);
        if (codesOf(documented)?.includes(problem.code) === false) faults.add(`${where} is not in the schema`);
        if (ANYWHERE.has(problem.code) && !(isRaw(operation) && OF_BODIES.has(problem.code))) continue;
        if (documented?.['x-error-codes']?.includes(problem.code) !== true) faults.add(where);
        const members = membersOf(documented);
        for (const member of Object.keys(problem)) if (!OF_ALL.has(member) && !members.has(member)) faults.add(`${where} ${member}`);
      }
    }
  expect([...faults].sort()).toEqual([]);
  expect([...seen]).toEqual(
    expect.arrayContaining([
      'not_authenticated',
      'invalid_api_key',
      'insufficient_scope',
      'csrf_failed',
      'validation_error',
      'malformed_body',
      'too_deep',
      'too_many_members',
      'too_many_items',
      'unsupported_media_type',
      'not_found',
      'unsupported_api_version',
      'second_factor_required',
    ]),
  );
});

const MALFORMED = ['seven', '7', `${ID}0`, 'a%20b', '%F0%9F%92%A5'];

test('what cannot be an id is as missing as an id that no row has, on every path', async () => {
  // Keys manage no keys and no sessions.
  const credentialOf = (path: string) =>
    /^\/v1\/(account|api-keys)/.test(path)
      ? { cookie: quietSession.cookie, 'x-csrf-token': quietSession.token }
      : { 'x-api-key': keys['sue']! };
  const differences: string[] = [];
  let compared = 0;
  for (const [path, item] of Object.entries<Json>(document.paths))
    for (const [method, operation] of Object.entries<Json>(item)) {
      const { payload, headers } = attemptsOf(operation, false).at(-1)!;
      const ask = async (url: string) => {
        const { cookie: _cookie, 'x-csrf-token': _token, ...rest } = headers;
        const body = payload === undefined ? {} : { payload };
        const sent = { method: method.toUpperCase() as 'GET', url, headers: { ...rest, ...credentialOf(path) }, ...body };
        const { statusCode, body: text } = await app.inject(sent);
        const { request_id: _id, ...problem } = JSON.parse(text) as Record<string, unknown>;
        return { status: statusCode, problem };
      };
      for (const name of path.startsWith('/v1/things') ? [] : (path.match(/\{\w*id\}/g) ?? [])) {
        const unknown = await ask(path.replaceAll(/\{\w+\}/g, ID));
        for (const id of MALFORMED) {
          const url = path.replace(name, id).replaceAll(/\{\w+\}/g, ID);
          const malformed = await ask(url);
          // A row that nobody can have is found missing before the body is read, and before the row above it.
          const isBefore = unknown.status !== 404 || url.includes(`/deliveries/${id}`);
          compared += 1;
          if (isBefore ? malformed.status !== 404 : !isDeepStrictEqual(unknown, malformed))
            differences.push(`${method} ${url}: ${JSON.stringify(malformed)} and not ${JSON.stringify(unknown)}`);
        }
      }
    }
  expect(differences).toEqual([]);
  expect(compared).toBeGreaterThan(200);
});

/** As the reference page puts it together: `packages/kit/src/openapi/reference/example.js`. */
async function exampleOf(media: Json): Promise<Json> {
  const page = new URL('../../packages/kit/src/openapi/reference/', import.meta.url).href;
  const { loadDocument } = await import(`${page}api-document.js`);
  const { mediaExample } = await import(`${page}example.js`);
  await loadDocument(`data:application/json,${encodeURIComponent(JSON.stringify(document))}`);
  return mediaExample(media, true);
}

test.each(['/v1/api-keys', '/v1/webhooks', '/v1/pictures', '/v1/things'])(
  'the samples of %s on the reference page work as they are shown',
  async (path) => {
    const headers = { cookie: quietSession.cookie, 'x-csrf-token': quietSession.token };
    const bodyOf = (operation: Json) => exampleOf(operation.requestBody.content['application/json']);
    const created = await app.inject({ method: 'POST', url: path, headers, payload: await bodyOf(document.paths[path].post) });
    expect([created.statusCode, created.body]).toEqual([201, expect.anything()]);
    const { patch } = document.paths[`${path}/{id}`] ?? {};
    if (patch === undefined) return;
    const changed = await app.inject({
      method: 'PATCH',
      url: `${path}/${created.json<{ id: string }>().id}`,
      headers,
      payload: await bodyOf(patch),
    });
    expect([changed.statusCode, changed.body]).toEqual([200, expect.anything()]);
  },
);

test('no schema is a choice among one', () => {
  const single: string[] = [];
  const visit = (value: Json, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const word of ['anyOf', 'oneOf', 'allOf'])
      if (Array.isArray(value[word]) && value[word].length < 2) single.push(`${path}/${word}`);
    for (const [key, inner] of Object.entries(value)) visit(inner, `${path}/${key}`);
  };
  visit(document, '');
  expect(single).toEqual([]);
});
