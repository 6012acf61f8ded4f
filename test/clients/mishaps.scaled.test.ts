import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as send, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../provision/free-port.ts';
import { scaled } from '../provision/scale.ts';

const TEN_MINUTES = 600_000;
const PYTHON = ['/usr/bin/python3', 'python3'].find(
  (each) => spawnSync(each, ['-c', 'import httpx, sys; assert sys.version_info >= (3, 11)']).status === 0,
);

/** The server that the clients call: a process, so that it can be killed. What it did is in its database. */
class Shop {
  readonly #folder: string;
  readonly #port: number;
  #child: ChildProcess | undefined;
  /** Settles when it listens: also after it was killed. */
  listens: Promise<void> = Promise.resolve();
  key = '';

  constructor(folder: string, port: number) {
    this.#folder = folder;
    this.#port = port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    const script = join(import.meta.dirname, 'serve-mishaps.ts');
    const child = spawn(
      process.execPath,
      ['--conditions=source', '--disable-warning=ExperimentalWarning', script, String(this.#port), this.#folder],
      {
        env: { ...process.env, NODE_OPTIONS: '', DATABASE_URL: '', NODE_ENV: 'development' },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    this.#child = child;
    const ended = once(child, 'exit').then(() => Promise.reject(new Error('The server ended before it listened.')));
    const [line] = (await Promise.race([once(createInterface({ input: child.stdout }), 'line'), ended])) as [string];
    ended.catch(() => undefined);
    // A key of the first start holds for the others.
    this.key ||= (JSON.parse(line) as { key: string }).key;
  }

  async kill(): Promise<void> {
    const child = this.#child!;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /** Nothing is finished, and what was not committed is gone. */
  async killAndStart(): Promise<void> {
    await this.kill();
    this.listens = this.start();
  }

  rows<Row>(sql: string, ...values: string[]): Row[] {
    const database = new DatabaseSync(join(this.#folder, 'mishaps.db'), { readOnly: true });
    try {
      return database.prepare(sql).all(...values) as Row[];
    } finally {
      database.close();
    }
  }
}

/** Calls from Python: one process for all of them, a line each. */
class Speaker {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(cwd: string, environment: Record<string, string>) {
    writeFileSync(join(cwd, 'main.py'), SCRIPT);
    this.#child = spawn(PYTHON ?? 'python3', ['main.py'], {
      cwd,
      env: { ...process.env, ...environment },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#lines = createInterface({ input: this.#child.stdout! })[Symbol.asyncIterator]();
  }

  async ask(line: string): Promise<string> {
    this.#child.stdin!.write(`${line}\n`);
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error('Python ended; its standard error says why.');
    return value;
  }

  end(): void {
    this.#child.stdin!.end();
  }
}

const SCRIPT = `import io, json, os, sys, api
direct = api.Client(os.environ["URL"], api_key=os.environ["KEY"])
def outcome(call):
    name, id, limit, opens = call["name"], call["id"], call["deadlineMs"] / 1000, call["opens"]
    hooks = api.Hooks(on_retry=lambda *_: api.httpx.get(opens)) if opens else None
    client = api.Client(call["baseUrl"], api_key=os.environ["KEY"], deadline=limit, timeout=limit, hooks=hooks)
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
        return {"ok": True, "value": calls[call["method"]]()}
    except api.ClientError as error:
        return {"ok": False, "name": type(error).__name__, "mayHaveHappened": error.may_have_happened}
for line in sys.stdin:
    print(json.dumps(outcome(json.loads(line))), flush=True)
`;

type Forward = (change?: (answer: { status: number; headers: Record<string, unknown>; body: Buffer }) => void) => void;
type Mishap = (request: IncomingMessage, response: ServerResponse, forward: Forward, shop: Shop) => void;

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
  /** A spent quota: nobody waits for so long. */
  throttled_days: refusal(429, () => '432000'),
  killed_before: (request, _response, _forward, shop) => void shop.killAndStart().then(() => request.socket.destroy()),
  killed_after: (request, _response, forward, shop) => forward(() => void shop.killAndStart().then(() => request.socket.destroy())),
  /** A proxy that sends the request a second time by itself. */
  doubled: (_request, response, forward) =>
    forward(() => forward(({ status, headers, body }) => void response.writeHead(status, headers as Record<string, string>).end(body))),
  clean_end: (_request, response, forward) =>
    forward(({ status, headers, body }) => {
      const { 'content-length': _length, ...rest } = headers;
      response.writeHead(status, rest as Record<string, string>).end(body.subarray(0, Math.floor(body.length / 2)));
    }),
};

/** Nothing listens until the client says that it tries again. */
const REFUSED = 'refused';

const METHODS = ['safe', 'keyed', 'unkeyed', 'if_match', 'upload', 'stream', 'iterator', 'live'] as const;
type Method = (typeof METHODS)[number];

interface Call {
  readonly baseUrl: string;
  readonly method: Method;
  readonly name: string;
  readonly id: string;
  readonly deadlineMs: number;
  /** To be fetched before the second attempt. */
  readonly opens: string;
}

/** Only what drips forever has to be cut; of everything else a busy machine may take its time, such as the start of a server. */
const deadlineOf = (mishap: string): number => (mishap === 'dripping_body' ? 4000 : 400_000);

interface Outcome {
  readonly ok: boolean;
  readonly value?: unknown;
  readonly name?: string;
  readonly mayHaveHappened?: boolean;
}

const CHANGES: ReadonlySet<Method> = new Set(['keyed', 'unkeyed', 'if_match', 'upload']);
/** By these a client knows that nothing was done. */
const CERTAIN: ReadonlySet<string> = new Set([
  REFUSED,
  'busy_seconds',
  'busy_date',
  'throttled_seconds',
  'throttled_date',
  'throttled_days',
]);
const REPEATED: ReadonlySet<Method> = new Set(['safe', 'keyed', 'upload', 'iterator', 'live']);

/** What a client said that is not what the server did. */
function faultsOf(mishap: string, method: Method, { ok, value, mayHaveHappened }: Outcome, times: number): string[] {
  // A PUT is repeated: done twice, it has the effect of once. A proxy that doubles an unkeyed POST is out of reach of a client.
  const isTwice = times > 1 && method !== 'upload' && !(mishap === 'doubled' && method === 'unkeyed');
  // Of a request that a proxy doubles, a client gets the second response: 412 for the change that the first one made.
  const isUnknown = mishap === 'doubled' && method === 'if_match';
  const isOver = ['redirect', 'dripping_body', 'throttled_days'].includes(mishap);
  const expected = { stream: 5, iterator: 3, live: 3 }[method as string];
  return [
    ...(isTwice ? [`done ${times} times`] : []),
    ...(ok && CHANGES.has(method) && times === 0 ? ['a success that was not done'] : []),
    ...(!ok && mayHaveHappened === false && times > 0 && !isUnknown ? ['done, and said not to be'] : []),
    ...(!ok && mayHaveHappened !== false && CERTAIN.has(mishap) ? ['not done, and said to be possible'] : []),
    ...(!ok && mayHaveHappened === true && !CHANGES.has(method) ? ['a read that may have changed something'] : []),
    ...(ok && expected !== undefined && value !== expected ? [`${String(value)} items of ${expected}`] : []),
    ...(!ok && REPEATED.has(method) && !isOver ? ['not repeated'] : []),
  ];
}

describe('what happens on the way does not change what is done', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kit-mishaps-'));
  let shop: Shop;
  let proxy: Server;
  let proxyUrl: string;
  const late: Server[] = [];
  let speaker: Speaker | undefined;

  beforeAll(async () => {
    shop = new Shop(folder, await freePort());
    await shop.start();
    const met = new Set<string>();
    const serve: RequestListener = (incoming, response) => {
      const [, mishap = '', run = '', ...path] = incoming.url!.split('/');
      if (mishap === 'open') {
        const opened = createServer(serve);
        late.push(opened);
        opened.listen(Number(run), '127.0.0.1', () => response.end());
        return;
      }
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('end', () => {
        const pass = (change?: Parameters<Forward>[0]): void => {
          const { host: _host, ...headers } = incoming.headers;
          const { hostname, port } = new URL(shop.url);
          const options = { host: hostname, port, method: incoming.method, path: `/${path.join('/')}`, headers };
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
          forwarded.on('error', () => incoming.socket.destroy());
          forwarded.end(Buffer.concat(chunks));
        };
        const forward: Forward = (change) => void shop.listens.then(() => pass(change));
        const isFirst = !met.has(run);
        met.add(run);
        if (isFirst && mishap in MISHAPS) MISHAPS[mishap]!(incoming, response, forward, shop);
        else forward();
      });
    };
    proxy = createServer(serve);
    await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening));
    proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  }, TEN_MINUTES);
  afterAll(async () => {
    for (const each of [proxy, ...late]) {
      each?.close();
      each?.closeAllConnections();
    }
    speaker?.end();
    await shop?.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  const typescript = async ({ baseUrl, method, name, id, deadlineMs, opens }: Call): Promise<Outcome> => {
    // oxlint-disable-next-line typescript/no-explicit-any -- the generated client is not known to the compiler
    const api: any = await import(join(folder, 'api.ts'));
    const direct = api.createClient({ baseUrl: shop.url, apiKey: shop.key });
    const onRetry = opens === '' ? {} : { onRetry: () => fetch(opens).then(() => undefined) };
    const client = api.createClient({ baseUrl, apiKey: shop.key, deadlineMs, timeoutMs: deadlineMs, ...onRetry });
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

  const python = async (call: Call): Promise<Outcome> => {
    speaker ??= new Speaker(folder, { URL: shop.url, KEY: shop.key });
    return JSON.parse(await speaker.ask(JSON.stringify(call))) as Outcome;
  };

  /** How often the server did it. */
  const timesDone = (method: Method, name: string, id: string): number => {
    if (method === 'unkeyed' || method === 'upload') return shop.rows('select 1 from effects where name = ?', name).length;
    if (method === 'keyed') return shop.rows('select 1 from notes where title = ?', name).length;
    return method === 'if_match' ? shop.rows<{ version: number }>('select version from notes where id = ?', id)[0]!.version - 1 : 0;
  };

  const ALL = [...Object.keys(MISHAPS), REFUSED];
  const runs: (readonly [string, typeof typescript])[] = [['typescript', typescript]];
  if (PYTHON !== undefined || process.env['KIT_REQUIRE_PYTHON'] !== undefined) runs.push(['python', python]);
  const chosen = ALL.slice(0, scaled(2, ALL.length));
  for (const [language, call] of runs)
    test.each(chosen.flatMap((mishap) => METHODS.map((method) => [mishap, method] as const)))(
      `${language}: %s, %s`,
      { timeout: TEN_MINUTES },
      async (mishap, method) => {
        const name = `${language} ${mishap} ${method}`.replaceAll(' ', '-');
        await shop.listens;
        const direct: typeof fetch = (path, init) =>
          fetch(new URL(path, shop.url), { ...init, headers: { 'x-api-key': shop.key, 'content-type': 'application/json' } });
        const ids: string[] = [];
        for (let count = 0; count < 3; count += 1) {
          const created = await direct('/v1/notes', { method: 'POST', body: JSON.stringify({ title: `${name} listed`, text: 'a' }) });
          ids.push(((await created.json()) as { id: string }).id);
        }
        const id = ids[0]!;
        const port = mishap === REFUSED ? await freePort() : undefined;
        const opens = port === undefined ? '' : `${proxyUrl}/open/${port}`;
        const baseUrl = `${port === undefined ? proxyUrl : `http://127.0.0.1:${port}`}/${mishap}/${name}`;
        const outcome = await call({ baseUrl, method, name, id, deadlineMs: deadlineOf(mishap), opens });
        await shop.listens;
        expect([outcome, faultsOf(mishap, method, outcome, timesDone(method, name, id))]).toEqual([outcome, []]);
      },
    );
});
