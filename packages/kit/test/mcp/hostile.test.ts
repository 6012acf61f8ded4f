import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Authenticator } from '../../src/auth/index.ts';
import { accounts, createUser } from '../../src/contrib/accounts/index.ts';
import { apiKeys, createApiKey } from '../../src/contrib/apikeys/index.ts';
import { mcp } from '../../src/contrib/mcp/index.ts';
import { metrics } from '../../src/contrib/metrics/index.ts';
import { Controller, route } from '../../src/http/index.ts';
import { CrudController, resource } from '../../src/crud/index.ts';
import { createTable, migration, model, t } from '../../src/db/index.ts';
import { allowAny, hasScopes, isAuthenticated } from '../../src/permissions/index.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';
import { clientThrottle, userThrottle } from '../../src/throttle/throttles.ts';

// What a caller may try who knows the source: lists, calls, batches, sessions and arguments that no honest client sends.

const Ok = z.object({ ok: z.boolean() });
const Who = z.object({ who: z.string().nullable() });
const permission = hasScopes();

/** The scopes of each token; a test may change them. */
const scopesOf = new Map<string, string[]>();
const bearer: Authenticator = {
  name: 'bearer',
  challenge: 'Bearer realm="api"',
  securityScheme: { type: 'http', scheme: 'bearer' },
  authenticate({ headers }) {
    const [, name = ''] = /^Bearer (\w+)$/.exec(String(headers['authorization'] ?? '')) ?? [];
    const scopes = scopesOf.get(name);
    const user = { id: name, username: name, email: null, is_active: true, is_staff: false, is_superuser: false };
    return scopes === undefined ? null : { user, scheme: 'bearer', credentialId: name, scopes };
  },
};
let cookiesAsked = 0;
const cookies: Authenticator = {
  name: 'cookies',
  securityScheme: { type: 'apiKey', in: 'cookie', name: 'session' },
  verifyCsrf: () => undefined,
  authenticate({ headers }) {
    cookiesAsked += 1;
    const user = { id: 'cookie', username: 'cookie', email: null, is_active: true, is_staff: true, is_superuser: true };
    return headers['cookie'] === undefined ? null : { user, scheme: 'session', scopes: null };
  },
};

let runs: unknown[] = [];
let checked = 0;
const waiting: AbortSignal[] = [];

class ThingController extends Controller {
  remember = route.post(
    '/remember',
    { permission, scope: 'things:write', tool: true, summary: 'Remember a text', body: z.object({ text: z.string() }), response: Ok },
    ({ body }) => {
      runs.push(body.text);
      return { ok: true };
    },
  );
  read = route.get(
    '/read/:name',
    { permission, scope: 'things:read', tool: true, summary: 'Read a text by name', params: z.object({ name: z.string() }), response: Ok },
    ({ params }) => {
      runs.push(params.name);
      return { ok: true };
    },
  );
  /** The rule could be asked whether a code exists: as often as the throttle allows. */
  redeem = route.post(
    '/redeem',
    {
      permission,
      scope: 'things:write',
      tool: true,
      summary: 'Redeem a code once',
      throttles: [userThrottle('3/hour', { name: 'redeem' })],
      body: z.object({ code: z.string() }),
      bodyBytesMax: 1000,
      response: Ok,
      validate: ({ code }) => {
        checked += 1;
        return code === 'right' ? [] : [{ location: ['body', 'code'], code: 'wrong', message: 'No such code.' }];
      },
    },
    () => ({ ok: true }),
  );
  once = route.post(
    '/once',
    {
      permission,
      scope: 'things:write',
      tool: true,
      summary: 'May run once an hour',
      response: Ok,
      throttles: [clientThrottle('1/hour', { name: 'once' })],
    },
    () => ({ ok: true }),
  );
  list = route.get(
    '/list',
    { permission, scope: 'things:read', tool: true, summary: 'List the names of things', response: z.array(z.string()) },
    () => ['a', 'b'],
  );
  slow = route.post(
    '/slow',
    { permission, scope: 'things:write', tool: true, summary: 'Wait for the client', response: Ok },
    async ({ signal }) => {
      waiting.push(signal);
      await new Promise((done) => signal.addEventListener('abort', done, { once: true }));
      return { ok: true };
    },
  );
}

class CredentialController extends Controller {
  open = route.get('/open', { permission: allowAny, auth: [], tool: true, summary: 'Open to every caller', response: Who }, ({ user }) => ({
    who: user?.id ?? null,
  }));
  ofCookies = route.get(
    '/of-cookies',
    { permission: allowAny, auth: ['cookies'], tool: true, summary: 'Knows cookies only', response: Who },
    ({ user }) => ({
      who: user?.id ?? null,
    }),
  );
  needsCookies = route.get(
    '/needs-cookies',
    { permission: isAuthenticated, auth: ['cookies'], tool: true, summary: 'Needs a cookie to run', response: Ok },
    () => ({
      ok: true,
    }),
  );
}

let kit: TestApp;
let url = '';
beforeAll(async () => {
  kit = await testApp({
    authenticators: [bearer, cookies],
    modules: [mcp()],
    mount: { '/v1': { '/things': ThingController, '/credentials': CredentialController } },
  });
  url = `${await kit.listen()}/mcp`;
});
beforeEach(() => {
  runs = [];
  checked = 0;
  scopesOf.clear();
  scopesOf.set('ada', ['things:*']);
  scopesOf.set('eve', ['things:read']);
});
afterAll(() => kit.close());

const message = (id: unknown, method: string, params: object = {}) => ({ jsonrpc: '2.0', id, method, params });
const callOf = (id: unknown, name: string, args: object = {}) => message(id, 'tools/call', { name, arguments: args });

async function send(who: string, body: unknown, more: Record<string, string> = {}, signal?: AbortSignal) {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${who}`,
      ...more,
    },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
  const text = await response.text();
  const lines = text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [line.slice(6)] : []));
  const parsed = (lines.length > 0 ? lines : [text]).filter((line) => line !== '').map((line) => JSON.parse(line) as Answer);
  return { status: response.status, headers: response.headers, text, answers: parsed };
}
interface Answer {
  readonly id?: unknown;
  readonly result?: {
    readonly tools: { readonly name: string }[];
    readonly isError?: boolean;
    readonly structuredContent?: unknown;
    readonly content: { readonly text: string }[];
  };
  readonly error?: { readonly code: number; readonly message: string };
}
const problemOf = (answer: Answer | undefined) =>
  JSON.parse(answer?.result?.content.at(-1)?.text ?? '{}') as {
    code?: string;
    errors?: { argument: string; code: string }[];
    [member: string]: unknown;
  };
const call = async (who: string, name: string, args: object = {}) => (await send(who, callOf(1, name, args))).answers[0];

describe('throttles', () => {
  test('arguments that the tool does not have, or that are too long, spend the budget of the operation', async () => {
    for (const args of [{ code: 'a', x: 1 }, { code: 'b', x: 1 }, { code: 'x'.repeat(2000) }])
      expect(problemOf(await call('ada', 'thing_redeem', args)).code).toMatch(/validation_error|body_too_large/);
    expect(checked).toBe(2);
    for (const args of [{ code: 'c', x: 1 }, { code: 'right' }, { code: 'x'.repeat(2000) }])
      expect(problemOf(await call('ada', 'thing_redeem', args))).toMatchObject({ code: 'throttled', status: 429 });
    expect(checked).toBe(2);
  });

  test('a call of a batch that its client may not make loses no result of the others', async () => {
    const { status, answers } = await send('ada', [
      callOf(1, 'thing_remember', { text: 'kept' }),
      callOf(2, 'thing_once'),
      callOf(3, 'thing_once'),
    ]);
    expect(status).toBe(200);
    expect(new Set(answers.map(({ id }) => id))).toEqual(new Set([1, 2, 3]));
    expect(answers.find(({ id }) => id === 1)?.result?.structuredContent).toEqual({ ok: true });
    // Calls of a batch run concurrently: one of the two was first.
    const others = answers.filter(({ id }) => id !== 1).map(problemOf);
    expect(others.filter(({ ok }) => ok === true)).toHaveLength(1);
    expect(others.find(({ ok }) => ok !== true)).toMatchObject({ code: 'throttled', retry_after: expect.any(Number) });
    const alone = await send('ada', callOf(1, 'thing_once'));
    expect([alone.status, alone.headers.get('retry-after')]).toEqual([429, expect.stringMatching(/^\d+$/)]);
  });
});

describe('batches', () => {
  test('with one id twice are rejected, and nothing of them runs', async () => {
    const { status } = await send('ada', [callOf(1, 'thing_remember', { text: 'one' }), callOf(1, 'thing_remember', { text: 'two' })]);
    expect(status).toBe(400);
    expect(runs).toEqual([]);
  });

  test('each call of a batch has its own arguments', async () => {
    const texts = Array.from({ length: 10 }, (_, index) => `text ${index}`);
    await send(
      'ada',
      texts.map((text, index) => callOf(index % 2 === 0 ? index : String(index), 'thing_remember', { text })),
    );
    expect(runs).toHaveLength(10);
    expect(new Set(runs)).toEqual(new Set(texts));
  });

  test('with more than one list are rejected: each costs as much as a request', async () => {
    expect((await send('ada', [message(1, 'tools/list'), message(2, 'tools/list')])).status).toBe(400);
    expect((await send('ada', [message(1, 'tools/list'), message(2, 'ping')])).status).toBe(200);
  });
});

describe('a path parameter', () => {
  test('that no URL can have is rejected', async () => {
    for (const name of ['', 'x'.repeat(501)]) {
      const found = problemOf(await call('ada', 'thing_read', { name }));
      expect(found).toMatchObject({ code: 'validation_error', errors: [{ argument: 'name' }] });
    }
    expect(runs).toEqual([]);
    for (const name of ['a/b', '..', '%2e', 'x'.repeat(500), 'ä?#&'])
      expect((await call('ada', 'thing_read', { name }))?.result?.isError).toBeUndefined();
    expect(runs).toEqual(['a/b', '..', '%2e', 'x'.repeat(500), 'ä?#&']);
  });
});

test('ten thousand unknown arguments get a short answer', async () => {
  const many = Object.fromEntries(Array.from({ length: 9000 }, (_, index) => [`argument${index}`, 1]));
  const found = problemOf(await call('ada', 'thing_remember', many));
  expect(found.code).toBe('validation_error');
  expect(found.errors?.length).toBeLessThanOrEqual(100);
});

test('arguments nested too deep, with keys of prototypes or with a text that no database can store are rejected as in a request', async () => {
  const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)]);
  expect((await send('ada', callOf(1, 'thing_remember', { text: deep(100) }))).status).toBe(400);
  const raw = (text: string) =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', authorization: 'Bearer ada' },
      body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"thing_remember","arguments":${text}}}`,
    });
  for (const text of ['{"__proto__":{"text":"x"}}', '{"text":"a","text":"b"}', '{"text":"\\u0000"}', '{"text":"\\ud800"}'])
    expect([text, (await raw(text)).status]).toEqual([text, 400]);
  expect(runs).toEqual([]);
});

test('a call that its client gives up is no error in the log', async () => {
  const client = new AbortController();
  const before = kit.records.length;
  const ended = send('ada', callOf(1, 'thing_slow'), {}, client.signal).catch(() => undefined);
  await expect.poll(() => waiting.length, { timeout: 20_000 }).toBe(1);
  client.abort();
  await ended;
  await expect.poll(() => waiting[0]?.aborted, { timeout: 20_000 }).toBe(true);
  // The log line of the rejected message, where there is one, is written in a later turn.
  await call('ada', 'thing_read', { name: 'x' });
  expect(
    kit.records
      .slice(before)
      .filter(({ level, msg }) => level >= 40 && msg.startsWith('mcp:'))
      .map(({ msg }) => msg),
  ).toEqual([]);
});

describe('sessions', () => {
  test('do not exist: an id of another caller changes nothing, and none is given', async () => {
    const opened = await send(
      'ada',
      message(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } }),
    );
    expect(opened.headers.get('mcp-session-id')).toBeNull();
    const names = (who: string, more: Record<string, string>) =>
      send(who, message(1, 'tools/list'), more).then(({ answers }) => answers[0]?.result?.tools.map(({ name }) => name));
    expect(await names('eve', { 'mcp-session-id': 'ada', 'last-event-id': '1' })).toEqual(await names('eve', {}));
    expect(await names('eve', {})).toEqual(['thing_read', 'thing_list', 'credential_open', 'credential_of_cookies']);
  });

  test('of browsers are never asked for, and what a cookie could reach is no tool', async () => {
    cookiesAsked = 0;
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', cookie: 'session=valid' },
      body: JSON.stringify(message(1, 'tools/list')),
    });
    expect([response.status, cookiesAsked]).toEqual([401, 0]);
    await call('eve', 'thing_read', { name: 'x' });
    expect(cookiesAsked).toBe(0);
  });
});

test('an operation that does not accept the kind of credential knows no caller, by tool as by request', async () => {
  for (const [name, path] of [
    ['credential_open', '/v1/credentials/open'],
    ['credential_of_cookies', '/v1/credentials/of-cookies'],
  ] as const) {
    const direct = await kit.inject({ method: 'GET', url: path, headers: { authorization: 'Bearer eve' } });
    expect([name, direct.json(), (await call('eve', name))?.result?.structuredContent]).toEqual([name, { who: null }, { who: null }]);
  }
  expect(
    (await kit.inject({ method: 'GET', url: '/v1/credentials/needs-cookies', headers: { authorization: 'Bearer eve' } })).statusCode,
  ).toBe(401);
  expect((await call('eve', 'credential_needs_cookies'))?.error?.code).toBe(-32602);
});

test('a tool from a list that the client has kept is unknown once its scope is revoked', async () => {
  const before = await send('ada', message(1, 'tools/list'));
  expect(before.text).toContain('thing_remember');
  scopesOf.set('ada', ['things:read']);
  expect((await call('ada', 'thing_remember', { text: 'x' }))?.error).toEqual({ code: -32602, message: 'Unknown tool: thing_remember' });
  expect(runs).toEqual([]);
});

test('prompts that nobody declared, completion, logging, tasks and subscriptions are unknown methods to every caller', async () => {
  const methods = [
    'prompts/list',
    'prompts/get',
    'resources/subscribe',
    'completion/complete',
    'logging/setLevel',
    'tasks/list',
    'tasks/get',
    'subscriptions/listen',
    'sampling/createMessage',
    'nothing/at_all',
  ];
  for (const method of methods) {
    const [answer] = (await send('ada', message(1, method, { uri: 'x', name: 'thing_remember', level: 'debug' }))).answers;
    expect([method, answer?.error]).toEqual([method, { code: -32601, message: 'Method not found' }]);
  }
});

test('nothing announces changes of the list', async () => {
  const [answer] = (
    await send(
      'ada',
      message(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } }),
    )
  ).answers;
  expect(answer?.result).toMatchObject({ capabilities: { tools: {} } });
  expect(JSON.stringify(answer)).not.toContain('listChanged');
});

test('a result that is a list has the form that each era allows', async () => {
  expect((await call('ada', 'thing_list'))?.result).toMatchObject({ structuredContent: { result: ['a', 'b'] } });
});

test('names of the language are unknown tools', async () => {
  for (const name of [
    '__proto__',
    'constructor',
    'toString',
    '',
    'x'.repeat(5000),
    'thing_remember ',
    'THING_REMEMBER',
    'KitMcpController',
  ])
    expect([name, (await call('ada', name))?.error]).toEqual([name, { code: -32602, message: `Unknown tool: ${name.slice(0, 128)}` }]);
});

describe('tools of tenants', () => {
  const columns = { id: t.uuidv7().pk(), tenant_id: t.text(20).readOnly(), title: t.text(50) };
  const notes = model('notes', columns, { indexes: [{ columns: ['tenant_id', '-id'] }] });
  class NoteController extends CrudController(resource(notes, { tenant: 'tenant_id' }), {
    permission,
    scope: 'notes',
    operations: { list: { tool: true }, retrieve: { tool: true }, create: { tool: true }, destroy: { tool: true } },
  }) {}
  let shared: TestApp;
  let asked = 0;
  beforeAll(async () => {
    shared = await testApp({
      authenticators: [bearer],
      tenant: ({ headers }) => String(headers['x-tenant'] ?? ''),
      membership: async ({ user }) => {
        asked += 1;
        return user.id === 'ada' ? { roles: ['member'] } : null;
      },
      modules: [
        mcp(),
        {
          name: 'notes',
          models: [notes],
          migrations: [migration('0001_initial', [createTable('notes', columns, { indexes: [{ columns: ['tenant_id', '-id'] }] })])],
        },
      ],
      mount: { '/v1': { '/notes': NoteController } },
    });
  });
  afterAll(() => shared.close());
  const ask = (who: string, method: string, params: object = {}) =>
    shared.inject({
      method: 'POST',
      url: '/mcp',
      headers: {
        host: 'localhost',
        authorization: `Bearer ${who}`,
        accept: 'application/json, text/event-stream',
        'x-tenant': 'acme',
      },
      payload: message(1, method, params),
    });

  test('ask for the membership once in each request, however many tools there are', async () => {
    scopesOf.set('ada', ['*']);
    asked = 0;
    expect((await ask('ada', 'tools/list')).body.match(/"name":"note_/g)).toHaveLength(4);
    expect(asked).toBe(1);
    expect((await ask('ada', 'tools/call', { name: 'note_create', arguments: { title: 'x' } })).body).toContain('acme');
    expect(asked).toBe(2);
  });

  test('are unknown to who is not a member, who cannot fill the log by asking', async () => {
    scopesOf.set('eve', ['*']);
    const before = shared.records.length;
    expect((await ask('eve', 'tools/list')).body).toContain('"tools":[]');
    const call = async (name: string) => (await ask('eve', 'tools/call', { name, arguments: {} })).body.replaceAll(name, '…');
    expect(await call('note_list')).toBe(await call('nothing'));
    expect(shared.records.slice(before).filter(({ level, msg }) => level >= 40 && msg.startsWith('mcp:'))).toEqual([]);
  });
});

describe('the endpoint is a route of the app', () => {
  const META = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
  const modern = (method: string) => ({ 'mcp-protocol-version': '2026-07-28', 'mcp-method': method });
  const asked = (app: TestApp, method: string, headers: Record<string, string>) =>
    app.inject({
      method: 'POST',
      url: '/mcp',
      headers: { host: 'localhost', accept: 'application/json, text/event-stream', ...headers },
      payload: message(1, method, method === 'server/discover' ? { _meta: META } : {}),
    });

  test.each(['tools/list', 'ping', 'server/discover'])('so its throttles hold for %s', async (method) => {
    await using app = await testApp({
      authenticators: [bearer],
      modules: [mcp()],
      throttles: [clientThrottle('2/hour')],
      mount: { '/v1': { '/things': ThingController } },
    });
    const status = async () =>
      (await asked(app, method, { authorization: 'Bearer ada', ...(method === 'server/discover' ? modern(method) : {}) })).statusCode;
    expect([await status(), await status(), await status()]).toEqual([200, 200, 429]);
  });

  test('so failed credentials are counted, and metrics count its requests and the operations that calls run', async () => {
    await using app = await testApp({
      modules: [accounts(), apiKeys({ failedAttempts: '2/hour' }), metrics({ path: '/metrics', permission: allowAny }), mcp()],
      mount: { '/v1': { '/things': ThingController } },
    });
    const user = await createUser(app.app.db, { username: 'ada' });
    const { raw } = await createApiKey(app.app.db, { user, name: 'k', scopes: ['things:*'] });
    const called = await app.inject({
      method: 'POST',
      url: '/mcp',
      headers: { host: 'localhost', accept: 'application/json, text/event-stream', authorization: `Bearer ${raw}` },
      payload: callOf(1, 'thing_remember', { text: 'x' }),
    });
    expect(called.body).toContain('"ok":true');
    const counted = (await app.inject({ method: 'GET', url: '/metrics' })).body
      .split('\n')
      .filter((line) => line.startsWith('http_server_request_duration_seconds_count'));
    expect(counted.join('\n')).toContain('/v1/things/remember');
    expect(counted.join('\n')).toContain('/mcp');
    const guess = async (last: string) =>
      (await asked(app, 'tools/list', { authorization: `Bearer ${raw.slice(0, -3)}${last}` })).statusCode;
    const wrong = ['AAA', 'BBB', 'CCC', 'DDD'].filter((last) => !raw.endsWith(last)).slice(0, 3);
    const [one = '', two = '', three = ''] = wrong;
    expect([await guess(one), await guess(two), await guess(three)]).toEqual([401, 401, 429]);
  });
});
