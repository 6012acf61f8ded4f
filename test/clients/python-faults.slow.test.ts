import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { allowAny, Controller, raw, route } from 'kit';
import { responseVersions } from 'kit/middleware';
import { generateClient } from 'kit/openapi';
import { testApp, type TestApp } from 'kit/testing';
import { runScript } from './run-script.ts';

const FIVE_MINUTES = 300_000;
const PYTHON = ['/usr/bin/python3', 'python3'].find(
  (each) => spawnSync(each, ['-c', 'import httpx, sys; assert sys.version_info >= (3, 11)']).status === 0,
);

const Text = z.strictObject({ text: z.string() });
/** JSON does not escape them, and they end lines for some readers. */
const SEPARATORS = 'a\u2028b\u0085c\u2029d';

class EventController extends Controller {
  static override readonly tags = ['events'];
  /** A heartbeat later than the time limit of the script. */
  late = route.stream('/late', { permission: allowAny, response: Text, heartbeatMs: 2000 }, async function* () {
    yield { id: '1', data: { text: SEPARATORS } };
    await new Promise((later) => setTimeout(later, 1500));
    yield { id: '2', data: { text: 'second' } };
  });
  started = route.stream('/started', { permission: allowAny, throttled: false, method: 'POST', response: Text }, async function* () {
    yield { data: { text: 'effect' } };
  });
  ended = route.stream('/ended', { permission: allowAny, ends: true, response: Text }, async function* () {
    yield { id: '1', data: { text: 'first' } };
  });
  replace = route.put('/replace', { permission: allowAny, body: Text, response: Text }, ({ body }) => body);
  form = route.post('/form', { permission: allowAny, body: raw(['text/csv', 'multipart/form-data']), response: Text }, () => ({
    text: '',
  }));
  cast = route.get('/cast', { permission: allowAny, query: z.strictObject({ cast: z.string() }), response: Text }, ({ query }) => ({
    text: query.cast,
  }));
  query = route.query('/', { permission: allowAny, body: Text, response: Text }, ({ body }) => body);
  queryAlias = route.post('/query', { permission: allowAny, throttled: false, body: Text, response: Text }, ({ body }) => body);
}

describe.skipIf(PYTHON === undefined)('a Python client', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kit-python-faults-'));
  const requests: string[] = [];
  let kit: TestApp;
  let faulty: Server;

  beforeAll(async () => {
    kit = await testApp({
      mount: { '/v1': { '/events': EventController } },
      middleware: [
        responseVersions({
          versions: [
            { version: '2' },
            { version: '1', changes: [{ appliesTo: ({ field }) => field === 'cast', transform: ({ text }) => ({ name: text }) }] },
          ],
          default: '2',
        }),
      ],
    });
    writeFileSync(join(folder, 'api.py'), generateClient(kit.app.routes, { language: 'python', title: 'Events', version: '1' }));
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      const [, fault] = request.url?.split('/') ?? [];
      if (fault === 'cut') request.socket.destroy();
      else if (fault === 'page') response.writeHead(200, { 'content-type': 'text/html' }).end('<html>');
      else if (fault === 'quota') response.writeHead(429, { 'retry-after': '432000' }).end('{"code":"request_quota_exceeded"}');
      else if (fault === 'slow') response.writeHead(503).end('{"code":"statement_timeout"}');
      else if (fault === 'null') response.end('null');
      else if (fault === 'empty') response.end();
      else if (fault === 'events') response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: {"text":"first"}\n\n');
      else if (fault === 'closed') response.writeHead(200, { 'content-type': 'text/event-stream' }).end();
      else if (fault === 'statement') response.writeHead(503, { 'retry-after': '0' }).end('{"code":"statement_timeout"}');
      else if (fault === 'type') response.end(JSON.stringify({ text: request.headers['content-type'] }));
      else if (fault === 'lost' && requests.length === 1) request.socket.destroy();
      else if (fault === 'lost') response.writeHead(412).end('{"code":"precondition_failed","detail":"Changed."}');
      else if (fault === 'token' && request.headers.authorization === 'Bearer 2') response.end('{"text":"in"}');
      else if (fault === 'token') response.writeHead(401).end('{"code":"not_authenticated"}');
      else if (fault === 'busy') response.writeHead(503, { 'retry-after': '0' }).end('{}');
    };
    faulty = createServer((request, response) => {
      requests.push(`${request.method} ${request.url}`);
      request.resume().on('end', () => answer(request, response));
    });
    await new Promise<void>((listening) => faulty.listen(0, '127.0.0.1', listening));
  }, FIVE_MINUTES);
  afterAll(async () => {
    faulty.close();
    faulty.closeAllConnections();
    await kit.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** The lines that a script prints. */
  const python = async (script: string) => {
    const head = `import asyncio, os, api, httpx
client = api.Client(os.environ["URL"], timeout=0.5, retries=0)
def faulty(path, retries=2):
    return api.Client(os.environ["FAULTY"] + path, timeout=0.5, retries=retries)
`;
    writeFileSync(join(folder, 'main.py'), head + script);
    const FAULTY = `http://127.0.0.1:${(faulty.address() as AddressInfo).port}`;
    const { stdout, stderr } = await runScript(PYTHON!, ['main.py'], folder, { URL: await kit.listen(), FAULTY });
    return [stderr.trim().split('\n').at(-1), stdout.trim().split('\n')];
  };

  test('reads events whose text has line separators, at its own pace', { timeout: FIVE_MINUTES }, async () => {
    // Lines as httpx 0.24 and newer split them.
    const script = `
httpx.Response.iter_lines = lambda self: (line for text in self.iter_text() for line in text.splitlines())
print([event.data.text == "a\\u2028b\\u0085c\\u2029d" for event in client.events.late()])
async def later():
    async with api.AsyncClient(os.environ["URL"], timeout=0.5, retries=0) as other:
        return [event.id async for event in other.events.late()]
print(asyncio.run(later()))
`;
    expect(await python(script)).toEqual(['', ['[True, False]', "['1', '2']"]]);
  });

  test('gives up a stream that never begins, and takes no page for a stream or a result', { timeout: FIVE_MINUTES }, async () => {
    const script = `
for path in ("/silent", "/page"):
    try:
        print(list(faulty(path, retries=0).events.late()))
    except api.ClientError as error:
        print(type(error).__name__, error)
try:
    faulty("/page", retries=0).events.query(body={"text": "a"})
except api.Problem as error:
    print(type(error).__name__, error)
`;
    const page = 'DecodingFailed The response is not JSON.';
    expect(await python(script)).toEqual([
      '',
      ['CallTimedOut The request timed out: timed out', 'DecodingFailed The response is not an event stream.', page],
    ]);
  });

  test('repeats what is safe, and only that', { timeout: FIVE_MINUTES }, async () => {
    requests.length = 0;
    const script = `
for call in (lambda: list(faulty("/cut").events.started()), lambda: faulty("/busy").events.query(body={"text": "a"}), lambda: faulty("/slow").events.query(body={"text": "a"}), lambda: faulty("/quota").events.query(body={"text": "a"})):
    try:
        print(call())
    except (httpx.TransportError, api.Problem) as error:
        print(getattr(error, "code", type(error).__name__), getattr(error, "retry_after", None))
`;
    expect(await python(script)).toEqual([
      '',
      ['ConnectionFailed None', 'http_503 0.0', 'statement_timeout None', 'request_quota_exceeded 432000.0'],
    ]);
    // The same query would take the database as long again, and nobody waits for days.
    const queries = [...Array<string>(3).fill('POST /busy/v1/events/query'), 'POST /slow/v1/events/query', 'POST /quota/v1/events/query'];
    expect(requests).toEqual(['POST /cut/v1/events/started', ...queries]);
  });

  test('sends one header of a name, whatever its case', { timeout: FIVE_MINUTES }, async () => {
    const script = `
print(client.events.cast(cast_="a"))
print(api.to_dict(client.events.cast(cast_="a", call=api.CallOptions(headers={"Accept-Version": "1"}))))
`;
    expect(await python(script)).toEqual(['', ["EventCastOutput(text='a')", "{'name': 'a'}"]]);
  });

  test(
    'takes a success without the object of its type for a problem, and asks again where that is safe',
    { timeout: FIVE_MINUTES },
    async () => {
      requests.length = 0;
      const script = `
for path in ("/null", "/empty"):
    for call in (lambda: faulty(path, 1).events.cast(cast_="a"), lambda: faulty(path, 1).events.form(body=b"a")):
        try:
            print(call())
        except api.Problem as error:
            print(type(error).__name__, error, error.attempts, error.may_have_happened)
`;
      expect(await python(script)).toEqual([
        '',
        [
          'DecodingFailed The response is of type null instead of object. 2 False',
          'DecodingFailed The response is of type null instead of object. 1 True',
          'DecodingFailed The response has no body. 2 False',
          'DecodingFailed The response has no body. 1 True',
        ],
      ]);
      expect(requests.map((each) => each.split(' ')[0])).toEqual(['GET', 'GET', 'POST', 'GET', 'GET', 'POST']);
    },
  );

  test(
    'says that a write may have been made, does not repeat a slow statement, and sends forms with a boundary',
    { timeout: FIVE_MINUTES },
    async () => {
      requests.length = 0;
      const script = `
import pickle
try:
    faulty("/lost").events.replace(body={"text": "a"}, call=api.CallOptions(if_match='"1"'))
except api.Problem as error:
    print(error.attempts, error.may_have_happened, error)
    copy = pickle.loads(pickle.dumps(error))
    print(type(copy) is type(error), copy.__dict__ == error.__dict__, str(copy) == str(error))
try:
    faulty("/statement").events.replace(body={"text": "a"})
except api.Problem as error:
    print(error.code, error.attempts, error.is_retryable)
try:
    api.Client("http://127.0.0.1:1", retries=0).events.replace(body={"text": "a"})
except httpx.TransportError as error:
    print(type(pickle.loads(pickle.dumps(error))).__name__, error.may_have_happened)
print(faulty("/type").events.form(body={"file": ("a.csv", b"a,b")}, content_type="multipart/form-data").text.split("; ")[0])
`;
      expect(await python(script)).toEqual([
        '',
        [
          '2 True Changed. An earlier attempt got no response, so the change may have been made.',
          'True True True',
          'statement_timeout 1 False',
          'ConnectionFailed False',
          'multipart/form-data',
        ],
      ]);
      expect(requests).toHaveLength(4);
    },
  );

  test(
    'takes a finite stream without its last event for a broken one, and one without a byte for a denied one',
    { timeout: FIVE_MINUTES },
    async () => {
      requests.length = 0;
      const script = `
print([event.data.text for event in client.events.ended()])
print(list(faulty("/closed").events.ended()))
print(len(list(faulty("/events").events.late())))
try:
    for event in faulty("/events").events.ended():
        print(event.data.text)
except api.ConnectionFailed as error:
    print(error)
async def main():
    async with api.AsyncClient(os.environ["FAULTY"] + "/events", retries=2) as other:
        try:
            async for event in other.events.ended():
                print(event.data.text)
        except api.ConnectionFailed as error:
            print(error)
asyncio.run(main())
`;
      const broken = ['first', 'The stream ended without the event `end`.'];
      expect(await python(script)).toEqual(['', ["['first']", '[]', '1', ...broken, ...broken]]);
      expect(requests).toHaveLength(4);
    },
  );

  test('refreshes its credential once after a 401', { timeout: FIVE_MINUTES }, async () => {
    requests.length = 0;
    const script = `
tokens = ["1"]
own = api.Client(os.environ["FAULTY"] + "/token", bearer=lambda: tokens[-1], refresh=lambda: tokens.append(str(len(tokens) + 1)))
print(own.events.form(body=b"a").text)
tokens.append("3")
try:
    own.events.form(body=b"a")
except api.Problem as error:
    print(error.status, error.attempts)
`;
    expect(await python(script)).toEqual(['', ['in', '401 2']]);
    expect(requests).toHaveLength(4);
  });
});
