import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as dial, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type App, migrateApp } from 'kit';
import { accountsOf, createUser } from 'kit/contrib/accounts';
import { createApiKey } from 'kit/contrib/apikeys';
import { generateClient } from 'kit/openapi';
import { kitchenSink } from '../kitchen-sink/app.ts';
import { created } from '../kitchen-sink/things.ts';
import { runScript } from './run-script.ts';

// Every feature of the toolkit through both clients. `npm test` does the same with the orders example; this is for `npm run test:long`.
const root = join(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'kit-sink-clients-'));
const PYTHON = ['/usr/bin/python3', 'python3'].find((each) => spawnSync(each, ['-c', 'import httpx, mypy']).status === 0);
const TEN_MINUTES = 600_000;

// oxlint-disable-next-line typescript/no-explicit-any -- the generated client is compiled below
type Generated = any;
let app: App;
let url: string;
let key: string;
let api: Generated;

beforeAll(async () => {
  app = kitchenSink({ folder: join(folder, 'files'), database: `sqlite:${join(folder, 'sink.db')}` });
  await migrateApp(app);
  await app.ready();
  url = await app.listen({ host: '127.0.0.1', port: 0 });
  const user = await createUser(app.db, { username: 'sue', is_staff: true }, accountsOf(app.db).management('test'));
  key = (await createApiKey(app.db, { user, name: 'all', scopes: ['*'] })).raw;
  for (const [language, file] of [
    ['typescript', 'api.ts'],
    ['python', 'api.py'],
  ] as const)
    writeFileSync(join(folder, file), generateClient(app.routes, { language, title: app.title, version: app.version }));
  api = await import(join(folder, 'api.ts'));
}, TEN_MINUTES);
afterAll(async () => {
  await app.close();
  rmSync(folder, { recursive: true, force: true });
});

const thing = (name: string) => ({
  name,
  at: '2026-01-31T12:00:00.000Z',
  day: null,
  shape: { kind: 'square', side: 3 },
  tree: { name: 'a', children: [{ name: 'b', children: [] }] },
  pair: ['x', 1],
  labels: { a: 'b' },
});

/** Passes bytes on; the first connections are cut as soon as the server has sent so many bytes. */
async function cuttingProxy(cuts: number, bytes: number): Promise<string> {
  const { port } = new URL(url);
  let left = cuts;
  const server = createServer((incoming: Socket) => {
    const isCut = (left -= 1) >= 0;
    let passed = 0;
    const outgoing = dial(Number(port), '127.0.0.1');
    for (const socket of [incoming, outgoing]) socket.on('error', () => undefined);
    incoming.on('data', (chunk) => outgoing.write(chunk));
    outgoing.on('data', (chunk) => {
      passed += chunk.length;
      if (isCut && passed > bytes) incoming.resetAndDestroy();
      else incoming.write(chunk);
    });
    outgoing.on('close', () => incoming.destroy());
    incoming.on('close', () => outgoing.destroy());
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('TypeScript', () => {
  const client = (options: object = {}): Generated => api.createClient({ baseUrl: url, apiKey: key, ...options });

  test('is strict TypeScript', { timeout: TEN_MINUTES }, async () => {
    const options =
      '--noEmit --ignoreConfig --strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --noUnusedLocals --isolatedDeclarations --declaration --erasableSyntaxOnly --verbatimModuleSyntax --target es2023 --module esnext --moduleResolution bundler --lib es2023,dom,dom.iterable,dom.asynciterable';
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    expect((await runScript(process.execPath, [tsc, ...options.split(' '), join(folder, 'api.ts')], folder, {})).stdout).toBe('');
  });

  test('calls operations of every kind', { timeout: TEN_MINUTES }, async () => {
    const { things, ticket: tickets, doc: docs, pictures } = client();
    expect((await things.list({ tag: ['a', 'b'], from: 'x', level: 'high' })).items[0].name).toBe('a+b');
    const read = await things.read({ id: 'lamp' });
    expect([read.shape, read.pair, read['odd name'], api.etagOf(read)]).toEqual([{ kind: 'circle', radius: 2 }, ['a', 1], true, '"lamp"']);
    expect((await things.create({ body: thing('found') })).shape).toEqual({ kind: 'square', side: 3 });
    expect((await things.search({ body: { text: 'found' } }))[0].name).toBe('found');
    expect((await things.move({ id: 'x', body: thing('x').tree })).children).toHaveLength(1);
    expect(await (await things.report({ id: 'x' })).text()).toBe('a,b\n1,2\n');
    const text = new Blob(['hello'], { type: 'text/plain' });
    expect(await things.put({ id: 'x', body: text, contentType: 'text/plain' })).toEqual({ bytes: 5, title: 'text/plain' });
    expect(await things.attach({ id: 'x', body: { file: text, title: 'greeting' } })).toEqual({ bytes: 5, title: 'greeting' });
    expect(await things.remove({ id: 'x' })).toBeUndefined();
    expect(await pictures.upload({ file: text, filename: 'a.txt' })).toMatchObject({ state: 'complete', size: 5 });
    const made = await tickets.create({ body: { sku: 'A-1', title: 'first' } });
    expect((await tickets.retrieve({ id: made.id, expand: ['lines'] })).lines).toEqual([]);
    const rows = [];
    for await (const row of tickets.all({ fields: ['title'] })) rows.push(row);
    expect(rows).toMatchObject([{ title: 'first' }]);
    expect(docs.share).toEqual(expect.any(Function));
  });

  test('problems have their code and members', async () => {
    const { things } = client();
    const taken = await things.create({ body: thing('taken') }).catch((error: unknown) => error);
    expect(taken).toMatchObject({ code: 'thing_taken', status: 409, body: { taken_by: 'somebody' } });
    expect(api.isProblem(taken, things.create)).toBe(true);
    await expect(things.read({ id: 'none' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(client({ apiKey: 'no' }).things.read({ id: 'x' })).rejects.toMatchObject({ code: 'invalid_api_key' });
  });

  test('a lost response does not double the effect, and a cut stream goes on', { timeout: TEN_MINUTES }, async () => {
    const lost = client({ baseUrl: await cuttingProxy(2, 10), headers: { connection: 'close' } });
    expect((await lost.things.create({ body: thing('once') })).name).toBe('once');
    expect(created.get('once')).toBe(1);
    const cut = client({ baseUrl: await cuttingProxy(2, 600), retries: 3 });
    const numbers = [];
    for await (const { data } of cut.things.count({ id: 'x' })) numbers.push(data.number);
    expect(numbers).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });
});

describe.skipIf(PYTHON === undefined)('Python', () => {
  const python = async (script: string, environment: Record<string, string> = {}) => {
    writeFileSync(
      join(folder, 'main.py'),
      `import os\nimport api\nclient = api.Client(os.environ["URL"], api_key=os.environ["KEY"])\n${script}`,
    );
    const { stdout, stderr } = await runScript(PYTHON!, ['main.py'], folder, { URL: url, KEY: key, ...environment });
    return stderr === '' ? stdout.trim().split('\n') : stderr;
  };
  const body = (name: string) => JSON.stringify(thing(name)).replaceAll('null', 'None');

  test('is clean for mypy --strict', { timeout: TEN_MINUTES }, async () => {
    const cache = join(root, 'node_modules/.cache/mypy');
    expect((await runScript(PYTHON!, ['-m', 'mypy', '--strict', '--cache-dir', cache, 'api.py'], folder, {})).stdout).toContain('Success');
  });

  test('calls operations of every kind, and has exceptions by code', { timeout: TEN_MINUTES }, async () => {
    const lines = await python(`
print(client.things.list(tag=["a", "b"], from_="x").items[0].name)
print(client.things.create(body=${body('python')}).shape)
print(client.things.search(body={"text": "found"})[0].name)
print(client.things.report(id="x").read().decode().splitlines()[0])
print(client.things.put(id="x", body=b"hello", content_type="text/plain"))
print(client.things.attach(id="x", body={"file": ("a.txt", b"hello", "text/plain"), "title": "greeting"}))
print(client.things.remove(id="x"))
picture = client.pictures.upload(file=b"hello", filename="a.txt")
print(picture.state, picture.size)
print([row.sku for row in client.ticket.all(limit=1)])
try:
    client.things.create(body=${body('taken')})
except api.ThingTakenProblem as problem:
    print(problem.code, problem.body["taken_by"])
`);
    expect(lines).toEqual([
      'a+b',
      "Square(kind='square', side=3)",
      'found',
      'a,b',
      "ReceivedSchema(bytes=5, title='text/plain')",
      "ReceivedSchema(bytes=5, title='greeting')",
      'None',
      'complete 5',
      "['A-1']",
      'thing_taken somebody',
    ]);
  });

  test(
    'an open file is sent again from where it stood, and an iterator that was read to its end is not sent again',
    { timeout: TEN_MINUTES },
    async () => {
      const put = (body: string) => `client.things.put(id="x", body=${body}, content_type="text/plain").bytes`;
      expect(await python(`print(${put('b"hello"')})`, { URL: await cuttingProxy(1, 10) })).toEqual(['5']);
      expect(await python(`import io\nprint(${put('io.BytesIO(b"hello")')})`, { URL: await cuttingProxy(1, 10) })).toEqual(['5']);
      const script = `
try:
    print(${put('iter([b"hello"])')})
except api.ConnectionFailed:
    print("lost")
print(${put('iter([b"hello"])')})`;
      expect(await python(script, { URL: await cuttingProxy(1, 10) })).toEqual(['lost', '5']);
    },
  );

  test('a lost response does not double the effect, and a cut stream goes on, also asynchronously', { timeout: TEN_MINUTES }, async () => {
    const lost = await python(`print(client.things.create(body=${body('python once')}).name)`, { URL: await cuttingProxy(2, 10) });
    expect([lost, created.get('python once')]).toEqual([['python once'], 1]);
    const streams = `print([event.data.number for event in client.things.count(id="x", call=api.CallOptions(retries=3))])`;
    const all = '[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]';
    expect(await python(streams, { URL: await cuttingProxy(2, 600) })).toEqual([all]);
    const async = `import asyncio
async def main() -> None:
    async with api.AsyncClient(os.environ["URL"], api_key=os.environ["KEY"]) as client:
        print([event.data.number async for event in client.things.count(id="x", call=api.CallOptions(retries=3))])
asyncio.run(main())`;
    expect(await python(async, { URL: await cuttingProxy(2, 600) })).toEqual([all]);
  });
});
