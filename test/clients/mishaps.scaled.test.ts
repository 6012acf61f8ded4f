import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as send, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { allowAny, Controller, hasScopes, raw, route } from 'kit';
import { accounts, accountsOf, createUser } from 'kit/contrib/accounts';
import { apiKeys, createApiKey } from 'kit/contrib/apikeys';
import { CrudController, resource } from 'kit/crud';
import { createTable, migration, model, t, versioned } from 'kit/db';
import { generateClient } from 'kit/openapi';
import { testApp, type TestApp } from 'kit/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { scaled } from '../provision/scale.ts';
import { runScript } from './run-script.ts';

const TEN_MINUTES = 600_000;
const PYTHON = ['/usr/bin/python3', 'python3'].find(
  (each) => spawnSync(each, ['-c', 'import httpx, sys; assert sys.version_info >= (3, 11)']).status === 0,
);

const notes = model('notes', { id: t.uuidv7().pk(), title: t.text(60), text: t.text(60), ...versioned() });
class NoteController extends CrudController(resource(notes, { unscoped: true, version: 'version' }), {
  permission: hasScopes({ allowUnscoped: true }),
  filters: { title: ['eq'] },
  page: { default: 1, max: 10 },
  live: true,
}) {}

/** How often an operation was done, by the name of the call. */
const effects = new Map<string, number>();
const done = (name: string): number => {
  effects.set(name, (effects.get(name) ?? 0) + 1);
  return effects.get(name)!;
};
const params = z.strictObject({ name: z.string() });
const Done = z.strictObject({ times: z.int() });
class EffectController extends Controller {
  static override readonly tags = ['effects'];
  plain = route.post('/:name', { permission: allowAny, throttled: false, params, response: Done }, ({ params: { name } }) => ({
    times: done(name),
  }));
  put = route.put(
    '/:name',
    { permission: allowAny, params, body: raw(['application/octet-stream']), response: z.strictObject({ bytes: z.int() }) },
    ({ params: { name }, body }) => {
      done(name);
      return { bytes: body.length };
    },
  );
  count = route.stream(
    '/:name/numbers',
    { permission: allowAny, params, ends: true, response: z.strictObject({ number: z.int() }) },
    async function* ({ request }) {
      const from = Number(request.headers['last-event-id'] ?? 0) + 1;
      for (let number = from; number <= 5; number += 1)
        yield { id: String(number), data: { number }, ...(number === 5 ? { event: 'end' } : {}) };
    },
  );
}

type Forward = (change?: (answer: { status: number; headers: Record<string, unknown>; body: Buffer }) => void) => void;
type Mishap = (request: IncomingMessage, response: ServerResponse, forward: Forward) => void;

const refusal =
  (status: number, retryAfter: () => string): Mishap =>
  (_request, response) =>
    void response
      .writeHead(status, { 'retry-after': retryAfter(), 'content-type': 'application/problem+json' })
      .end('{"code":"unavailable"}');
const success =
  (type: string, text: string): Mishap =>
  (_request, response, forward) =>
    forward(() => void response.writeHead(200, { 'content-type': type }).end(text));

/** What may happen to the first attempt, on its way there or back. */
const MISHAPS: Readonly<Record<string, Mishap>> = {
  reset_before: (request) => void request.socket.destroy(),
  reset_after: (request, _response, forward) => forward(() => void request.socket.destroy()),
  cut_body: (request, response, forward) =>
    forward(({ status, headers, body }) => {
      response.writeHead(status, { ...headers, 'content-length': String(body.length + 10) } as Record<string, string>);
      response.write(body.subarray(0, Math.max(1, Math.floor(body.length / 2))), () => request.socket.destroy());
    }),
  dripping_body: (_request, response, forward) =>
    forward(({ status, headers }) => {
      const { 'content-length': _length, ...rest } = headers;
      response.writeHead(status, rest as Record<string, string>);
      const timer = setInterval(() => response.write(' '), 50);
      response.on('close', () => clearInterval(timer));
    }),
  empty_success: success('application/json', ''),
  page_success: success('text/html', '<html>Welcome</html>'),
  redirect: (_request, response) => void response.writeHead(302, { location: 'http://127.0.0.1:9/elsewhere' }).end(),
  busy_seconds: refusal(503, () => '0'),
  busy_date: refusal(503, () => new Date(Date.now() - 1000).toUTCString()),
  throttled_seconds: refusal(429, () => '0'),
  throttled_date: refusal(429, () => new Date(Date.now() - 1000).toUTCString()),
  /** A proxy that sends the request a second time by itself. */
  doubled: (_request, response, forward) =>
    forward(() => forward(({ status, headers, body }) => void response.writeHead(status, headers as Record<string, string>).end(body))),
  clean_end: (_request, response, forward) =>
    forward(({ status, headers, body }) => {
      const { 'content-length': _length, ...rest } = headers;
      response.writeHead(status, rest as Record<string, string>).end(body.subarray(0, Math.floor(body.length / 2)));
    }),
};

const METHODS = ['safe', 'keyed', 'unkeyed', 'if_match', 'upload', 'stream', 'iterator', 'live'] as const;
type Method = (typeof METHODS)[number];

interface Call {
  readonly baseUrl: string;
  readonly method: Method;
  readonly name: string;
  readonly id: string;
  readonly deadlineMs: number;
}

/** Only what drips forever has to be cut; of everything else a busy machine may take its time. */
const deadlineOf = (mishap: string): number => (mishap === 'dripping_body' ? 4000 : 120_000);

interface Outcome {
  readonly ok: boolean;
  readonly value?: unknown;
  readonly name?: string;
  readonly mayHaveHappened?: boolean;
}

const CHANGES: ReadonlySet<Method> = new Set(['keyed', 'unkeyed', 'if_match', 'upload']);
const REPEATED: ReadonlySet<Method> = new Set(['safe', 'keyed', 'upload', 'iterator', 'live']);

/** What a client said that is not what the server did. */
function faultsOf(mishap: string, method: Method, { ok, value, mayHaveHappened }: Outcome, times: number): string[] {
  // A PUT is repeated: done twice, it has the effect of once. A proxy that doubles an unkeyed POST is out of reach of a client.
  const isTwice = times > 1 && method !== 'upload' && !(mishap === 'doubled' && method === 'unkeyed');
  // Of a request that a proxy doubles, a client gets the second response: 412 for the change that the first one made.
  const isUnknown = mishap === 'doubled' && method === 'if_match';
  const isOver = mishap === 'redirect' || mishap === 'dripping_body';
  const expected = { stream: 5, iterator: 3, live: 3 }[method as string];
  return [
    ...(isTwice ? [`done ${times} times`] : []),
    ...(ok && CHANGES.has(method) && times === 0 ? ['a success that was not done'] : []),
    ...(!ok && mayHaveHappened === false && times > 0 && !isUnknown ? ['done, and said not to be'] : []),
    ...(!ok && mayHaveHappened === true && !CHANGES.has(method) ? ['a read that may have changed something'] : []),
    ...(ok && expected !== undefined && value !== expected ? [`${String(value)} items of ${expected}`] : []),
    ...(!ok && REPEATED.has(method) && !isOver ? ['not repeated'] : []),
  ];
}

describe('what happens on the way does not change what is done', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kit-mishaps-'));
  let kit: TestApp;
  let proxy: Server;
  let proxyUrl: string;
  let key: string;

  beforeAll(async () => {
    kit = await testApp({
      modules: [
        accounts(),
        apiKeys(),
        { name: 'notes', models: [notes], migrations: [migration('0001_initial', [createTable('notes', notes.columns)])] },
      ],
      mount: { '/v1': { '/notes': NoteController, '/effects': EffectController } },
    });
    const user = await createUser(kit.app.db, { username: 'ada' }, accountsOf(kit.app.db).management(null));
    key = (await createApiKey(kit.app.db, { user, name: 'client', scopes: ['*'] })).raw;
    for (const [language, file] of [
      ['typescript', 'api.ts'],
      ['python', 'api.py'],
    ] as const)
      writeFileSync(join(folder, file), generateClient(kit.app.routes, { language, title: 'Mishaps', version: '1' }));
    const url = new URL(await kit.listen());
    const met = new Set<string>();
    proxy = createServer((incoming, response) => {
      const [, mishap = '', run = '', ...path] = incoming.url!.split('/');
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('end', () => {
        const forward: Forward = (change) => {
          const { host: _host, ...headers } = incoming.headers;
          const options = { host: url.hostname, port: url.port, method: incoming.method, path: `/${path.join('/')}`, headers };
          const forwarded = send(options, (answer) => {
            const parts: Buffer[] = [];
            answer.on('data', (part: Buffer) => {
              parts.push(part);
              // A live list has no end: this much of it is a response.
              if (part.includes('event: ready')) answer.destroy();
            });
            answer.on('error', () => undefined);
            answer.on('close', () => {
              const { 'transfer-encoding': _encoding, connection: _connection, ...kept } = answer.headers;
              const whole = { status: answer.statusCode!, headers: kept, body: Buffer.concat(parts) };
              if (change !== undefined) change(whole);
              else response.writeHead(whole.status, kept).end(whole.body);
            });
          });
          forwarded.end(Buffer.concat(chunks));
        };
        const isFirst = !met.has(run);
        met.add(run);
        if (isFirst && mishap in MISHAPS) MISHAPS[mishap]!(incoming, response, forward);
        else forward();
      });
    });
    await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening));
    proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  }, TEN_MINUTES);
  afterAll(async () => {
    proxy.close();
    proxy.closeAllConnections();
    await kit.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const typescript = async ({ baseUrl, method, name, id, deadlineMs }: Call): Promise<Outcome> => {
    // oxlint-disable-next-line typescript/no-explicit-any -- the generated client is not known to the compiler
    const api: any = await import(join(folder, 'api.ts'));
    const direct = api.createClient({ baseUrl: await kit.listen(), apiKey: key });
    const client = api.createClient({ baseUrl, apiKey: key, deadlineMs });
    const listed = async <T>(items: AsyncIterable<T>): Promise<number> => {
      let count = 0;
      for await (const _item of items) count += 1;
      return count;
    };
    const calls: Readonly<Record<Method, () => Promise<unknown>>> = {
      safe: () => client.note.retrieve({ id }),
      keyed: () => client.note.create({ body: { title: name, text: 'a' } }),
      unkeyed: () => client.effects.plain({ name }),
      if_match: async () => client.note.partialUpdate({ id, body: { text: 'changed' } }, { ifMatch: await direct.note.retrieve({ id }) }),
      upload: () => client.effects.put({ name, body: new Blob(['12345']) }),
      stream: () => listed(client.effects.count({ name }, { deadlineMs })),
      iterator: () => listed(client.note.all({ title: `${name} listed` })),
      live: async () => {
        const lists = client.note.liveList({ title: `${name} listed` }, { deadlineMs });
        const { value } = await lists.next();
        await lists.return(undefined);
        return value.length as number;
      },
    };
    try {
      return { ok: true, value: await calls[method]() };
    } catch (error) {
      const { name: kind, mayHaveHappened } = error as { name: string; mayHaveHappened: boolean };
      return { ok: false, name: kind, mayHaveHappened };
    }
  };

  const python = async ({ baseUrl, method, name, id, deadlineMs }: Call): Promise<Outcome> => {
    writeFileSync(
      join(folder, 'main.py'),
      `import io, json, os, sys, api
base, method, name, id = sys.argv[1:5]
limit = int(sys.argv[5]) / 1000
direct = api.Client(os.environ["URL"], api_key=os.environ["KEY"])
client = api.Client(base, api_key=os.environ["KEY"], deadline=limit)
calls = {
    "safe": lambda: client.note.retrieve(id=id) and None,
    "keyed": lambda: client.note.create(body={"title": name, "text": "a"}) and None,
    "unkeyed": lambda: client.effects.plain(name=name) and None,
    "if_match": lambda: client.note.partial_update(id=id, body={"text": "changed"}, call=api.CallOptions(if_match=direct.note.retrieve(id=id))) and None,
    "upload": lambda: client.effects.put(name=name, body=io.BytesIO(b"12345")) and None,
    "stream": lambda: len(list(client.effects.count(name=name, call=api.CallOptions(deadline=limit)))),
    "iterator": lambda: len(list(client.note.all(title=f"{name} listed"))),
    "live": lambda: len(next(iter(client.note.live_list(title=f"{name} listed", call=api.CallOptions(deadline=limit))))),
}
try:
    print(json.dumps({"ok": True, "value": calls[method]()}))
except api.ClientError as error:
    print(json.dumps({"ok": False, "name": type(error).__name__, "mayHaveHappened": error.may_have_happened}))
`,
    );
    const { stdout, stderr } = await runScript(PYTHON!, ['main.py', baseUrl, method, name, id, String(deadlineMs)], folder, {
      URL: await kit.listen(),
      KEY: key,
    });
    expect(stderr).toBe('');
    return JSON.parse(stdout) as Outcome;
  };

  /** How often the server did it. */
  const timesDone = async (method: Method, name: string, id: string): Promise<number> => {
    if (method === 'unkeyed' || method === 'upload') return effects.get(name) ?? 0;
    const rows = await kit.app.db.query<{ id: string; title: string; version: number }>('select * from notes');
    if (method === 'keyed') return rows.filter(({ title }) => title === name).length;
    return method === 'if_match' ? rows.find((row) => row.id === id)!.version - 1 : 0;
  };

  const ALL = Object.keys(MISHAPS);
  const runs: (readonly [string, typeof typescript])[] = [['typescript', typescript]];
  if (PYTHON !== undefined || process.env['KIT_REQUIRE_PYTHON'] !== undefined) runs.push(['python', python]);
  const chosen = ALL.slice(0, scaled(2, ALL.length));
  for (const [language, call] of runs)
    test.each(chosen.flatMap((mishap) => METHODS.map((method) => [mishap, method] as const)))(
      `${language}: %s, %s`,
      { timeout: TEN_MINUTES },
      async (mishap, method) => {
        const name = `${language} ${mishap} ${method}`.replaceAll(' ', '-');
        const headers = { 'x-api-key': key };
        const body = { title: `${name} listed`, text: 'a' };
        const created = [];
        for (let count = 0; count < 3; count += 1)
          created.push(await kit.inject({ method: 'POST', url: '/v1/notes', headers, payload: body }));
        const { id } = created[0]!.json<{ id: string }>();
        const outcome = await call({ baseUrl: `${proxyUrl}/${mishap}/${name}`, method, name, id, deadlineMs: deadlineOf(mishap) });
        const times = await timesDone(method, name, id);
        expect([outcome, faultsOf(mishap, method, outcome, times)]).toEqual([outcome, []]);
      },
    );
});
