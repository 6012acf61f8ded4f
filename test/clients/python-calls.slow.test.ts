import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { allowAny, Controller, raw, route } from 'kit';
import { generateClient } from 'kit/openapi';
import { testApp, type TestApp } from 'kit/testing';
import { runScript } from './run-script.ts';

const FIVE_MINUTES = 300_000;
const FILE_BYTES = 60_000_000;
const MEMORY_BYTES_MAX = 15_000_000;
const PYTHON = ['/usr/bin/python3', 'python3'].find(
  (each) => spawnSync(each, ['-c', 'import httpx, sys; assert sys.version_info >= (3, 11)']).status === 0,
);

const Note = z.strictObject({ text: z.string(), class: z.string().optional(), kind: z.literal('note') }).meta({ id: 'Note' });
const Picture = z.strictObject({ url: z.string(), kind: z.literal('picture') }).meta({ id: 'Picture' });

function* zeros(): Generator<Buffer> {
  const piece = Buffer.alloc(100_000);
  for (let sent = 0; sent < FILE_BYTES; sent += piece.length) yield piece;
}

class FileController extends Controller {
  static override readonly tags = ['files'];
  read = route.get('/file', { permission: allowAny, response: raw('application/octet-stream') }, () => Readable.from(zeros()));
  replace = route.put(
    '/file',
    {
      permission: allowAny,
      body: raw(['application/octet-stream'], { bytesMax: 2 * FILE_BYTES, stream: true }),
      response: z.strictObject({ bytes: z.int() }),
    },
    async ({ body }) => {
      let bytes = 0;
      for await (const piece of body as AsyncIterable<Buffer>) bytes += piece.length;
      return { bytes };
    },
  );
  parts = route.get(
    '/parts',
    { permission: allowAny, response: z.strictObject({ first: Note, parts: z.array(z.union([Note, Picture])) }) },
    () => ({
      first: { text: 'a', class: 'b', kind: 'note' as const },
      parts: [
        { url: 'c', kind: 'picture' as const },
        { text: 'd', kind: 'note' as const },
      ],
    }),
  );
  write = route.post('/notes', { permission: allowAny, body: Note, response: Note }, ({ body }) => body);
}

describe.skipIf(PYTHON === undefined)('calls of a Python client', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kit-python-calls-'));
  let kit: TestApp;
  let slow: Server;
  let seen: string[] = [];

  beforeAll(async () => {
    kit = await testApp({ mount: { '/v1': { '/files': FileController } } });
    writeFileSync(join(folder, 'api.py'), generateClient(kit.app.routes, { language: 'python', title: 'Files', version: '1' }));
    // One byte each 50 ms, forever; or an error that asks for a pause.
    slow = createServer((request, response) => {
      request.resume();
      seen.push(`${request.method} ${request.url}`);
      if (request.url?.startsWith('/busy') === true) {
        response.writeHead(503, { 'retry-after': '5' }).end('{}');
        return;
      }
      response.writeHead(200, { 'content-type': 'application/json' });
      const timer = setInterval(() => response.write(' '), 50);
      response.on('close', () => clearInterval(timer));
    });
    await new Promise<void>((listening) => slow.listen(0, '127.0.0.1', listening));
  }, FIVE_MINUTES);
  afterAll(async () => {
    slow.close();
    slow.closeAllConnections();
    await kit.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const python = async (script: string) => {
    writeFileSync(join(folder, 'main.py'), `import asyncio, os, pickle, time, api\nclient = api.Client(os.environ["URL"])\n${script}`);
    const SLOW = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`;
    const { stdout, stderr } = await runScript(PYTHON!, ['main.py'], folder, { URL: await kit.listen(), SLOW });
    return [stderr.trim().split('\n').at(-1), ...stdout.trim().split('\n')];
  };

  test('objects have attributes, compare by them, can be pickled, and keep what was sent', { timeout: FIVE_MINUTES }, async () => {
    const script = `
parts = client.files.parts()
print(parts.first.text, parts.first.class_, parts.parts)
copy = pickle.loads(pickle.dumps(parts))
print(copy == parts, hash(copy) == hash(parts), api.to_dict(copy) == api.to_dict(parts))
print(api.Note(text="a", class_="b", kind="note") == parts.first, api.to_dict(api.Note(text="a", class_="b", kind="note")))
try:
    parts.first.txt
except AttributeError as error:
    print(error)
try:
    parts.first.text = "b"
except AttributeError as error:
    print(type(error).__name__)
part = api._shape("Note")({"kind": "note"})
try:
    part.text
except AttributeError as error:
    print(error)
`;
    expect(await python(script)).toEqual([
      '',
      "a b [Picture(url='c', kind='picture'), Note(text='d', kind='note')]",
      'True True True',
      "True {'text': 'a', 'class': 'b', 'kind': 'note'}",
      'Note.txt: there is no such member.',
      'FrozenInstanceError',
      'Note.text: the response left it out (see `fields`).',
    ]);
  });

  test(
    'a deadline ends a body that drips and pauses that would outlast it, with and without an event loop',
    { timeout: FIVE_MINUTES },
    async () => {
      seen = [];
      const script = `
def measured(name, call):
    begin = time.monotonic()
    try:
        print(call())
    except api.CallTimedOut as error:
        print(name, error, time.monotonic() - begin < 8, error.attempts, error.may_have_happened)
    except api.Problem as error:
        print(name, error.status, time.monotonic() - begin < 8, error.attempts)

def own(path, deadline):
    return api.Client(os.environ["SLOW"] + path, deadline=deadline)

measured("drip", lambda: own("/drip", 0.5).files.parts())
measured("write", lambda: own("/drip", None).files.write(body={"text": "a", "kind": "note"}, call=api.CallOptions(deadline=0.5)))
measured("busy", lambda: own("/busy", 1.0).files.parts())
measured("file", lambda: own("/drip", 0.5).files.read().read())

async def main():
    async with api.AsyncClient(os.environ["SLOW"] + "/drip", deadline=0.5) as other:
        for name, call in (("drip", other.files.parts()), ("write", other.files.write(body={"text": "a", "kind": "note"}))):
            begin = time.monotonic()
            try:
                await call
            except api.CallTimedOut as error:
                print("async", name, error, time.monotonic() - begin < 8, error.may_have_happened)

asyncio.run(main())
`;
      const late = 'The call took longer than its deadline.';
      expect(await python(script)).toEqual([
        '',
        `drip ${late} True 1 False`,
        `write ${late} True 1 True`,
        'busy 503 True 1',
        `file ${late} True 1 False`,
        `async drip ${late} True False`,
        `async write ${late} True True`,
      ]);
      expect(seen).toHaveLength(6);
    },
  );

  test('hooks see each attempt, a call gives its response, and curl commands have no credential', { timeout: FIVE_MINUTES }, async () => {
    const script = `
lines = []
own = api.Client(os.environ["URL"], api_key="secret-key", hooks=api.print_curl(lines.append))
received = api.Received()
own.files.write(body={"text": "it's", "kind": "note"}, call=api.CallOptions(received=received))
print(received.status, "content-type" in received.headers, received.duration > 0)
command, outcome = lines
print("secret-key" in command, '-H "x-api-key: $X_API_KEY"' in command, outcome.startswith("# 200 in "))
import subprocess
run = subprocess.run(["sh", "-c", command.replace("curl ", "curl -s ", 1)], capture_output=True, text=True, env={**os.environ, "X_API_KEY": ""})
print(run.stdout if run.returncode == 0 else run.returncode)

attempts = []
async def sign(request):
    await asyncio.sleep(0)
    request.headers["x-signature"] = str(request.attempt)
    attempts.append(request.attempt)

def retried(error, wait, request):
    attempts.append((type(error).__name__, request.attempt))

async def main():
    async with api.AsyncClient("http://127.0.0.1:1", retries=1, hooks=api.Hooks(on_request=sign, on_retry=retried)) as other:
        try:
            await other.files.parts()
        except api.ConnectionFailed as error:
            print(attempts, error.attempts)
    signed = api.Hooks(on_request=lambda request: request.headers.update({"x-api-key": "other"}), on_response=lambda got, sent: print(got.status, sent.headers["x-api-key"]))
    async with api.AsyncClient(os.environ["URL"], api_key="own", hooks=signed) as other:
        await other.files.parts()

asyncio.run(main())
`;
    const [fault, ...lines] = await python(script);
    expect(fault).toBe('');
    expect([lines[0], lines[1]]).toEqual(['200 True True', 'False True True']);
    expect(lines.slice(3)).toEqual(["[1, ('ConnectionFailed', 1), 2] 2", '200 other']);
    expect(lines[2] === '127' || lines[2]?.includes("it's")).toBe(true);
  });

  test(
    'a download and an upload of 60 MB take less than 15 MB more memory, with and without an event loop',
    { timeout: FIVE_MINUTES },
    async () => {
      const script = `
client.files.parts()
def peak():
    # Not ru_maxrss: a program begins with that of the process that started it.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
async def main():
    async with api.AsyncClient(os.environ["URL"]) as other:
        await other.files.parts()
        before = peak()
        async with await other.files.read() as file:
            print(await file.save("second.bin"))
        with open("second.bin", "rb") as source:
            print((await other.files.replace(body=source)).bytes)
        print(peak() - before)
before = peak()
print(client.files.read().save("first.bin"))
with open("first.bin", "rb") as source:
    source.seek(10)
    print(client.files.replace(body=source).bytes)
print(peak() - before)
asyncio.run(main())
print(sorted(name for name in os.listdir(".") if "bin" in name))
`;
      const [fault, ...lines] = await python(script);
      expect([fault, lines[0], lines[1], lines[3], lines[4], lines[6]]).toEqual([
        '',
        String(FILE_BYTES),
        String(FILE_BYTES - 10),
        String(FILE_BYTES),
        String(FILE_BYTES),
        "['first.bin', 'second.bin']",
      ]);
      for (const more of [lines[2], lines[5]]) expect(Number(more)).toBeLessThan(MEMORY_BYTES_MAX);
      expect(statSync(join(folder, 'first.bin')).size).toBe(FILE_BYTES);
    },
  );
});
