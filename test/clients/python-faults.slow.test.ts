import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { allowAny, Controller, route } from 'kit';
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
    faulty = createServer((request, response) => {
      requests.push(`${request.method} ${request.url}`);
      const [, fault] = request.url?.split('/') ?? [];
      if (fault === 'cut') request.socket.destroy();
      else if (fault === 'page') response.writeHead(200, { 'content-type': 'text/html' }).end('<html>');
      else if (fault === 'slow') response.writeHead(503).end('{"code":"statement_timeout"}');
      else if (fault === 'busy') response.writeHead(503, { 'retry-after': '0' }).end('{}');
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
print([event.data["text"] == "a\\u2028b\\u0085c\\u2029d" for event in client.events.late()])
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
    except (httpx.ReadTimeout, api.Problem) as error:
        print(type(error).__name__, error)
try:
    faulty("/page").events.query(body={"text": "a"})
except api.Problem as error:
    print(type(error).__name__, error)
`;
    const page = 'Problem The response is not JSON.';
    expect(await python(script)).toEqual(['', ['ReadTimeout timed out', 'Problem The response is not an event stream.', page]]);
  });

  test('repeats what is safe, and only that', { timeout: FIVE_MINUTES }, async () => {
    requests.length = 0;
    const script = `
for call in (lambda: list(faulty("/cut").events.started()), lambda: faulty("/busy").events.query(body={"text": "a"}), lambda: faulty("/slow").events.query(body={"text": "a"})):
    try:
        print(call())
    except (httpx.TransportError, api.Problem) as error:
        print(getattr(error, "code", type(error).__name__))
`;
    expect(await python(script)).toEqual(['', ['RemoteProtocolError', 'http_503', 'statement_timeout']]);
    // The same query would take the database as long again.
    const queries = [...Array<string>(3).fill('POST /busy/v1/events/query'), 'POST /slow/v1/events/query'];
    expect(requests).toEqual(['POST /cut/v1/events/started', ...queries]);
  });

  test('sends one header of a name, whatever its case', { timeout: FIVE_MINUTES }, async () => {
    const script = `
print(client.events.cast(cast_="a"))
print(client.events.cast(cast_="a", call=api.CallOptions(headers={"Accept-Version": "1"})))
`;
    expect(await python(script)).toEqual(['', ["{'text': 'a'}", "{'name': 'a'}"]]);
  });
});
