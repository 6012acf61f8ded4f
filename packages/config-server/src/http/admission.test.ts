import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { ask, OTHER_TOKEN, SERVER_TOML, startServer, TOKEN, type Reply, type RunningServer } from '../../test/running-server.ts';

/** Everything of an answer that reaches the caller, the date aside. */
function bytesOf(reply: Reply): string {
  const headers = reply.rawHeaders.filter((_, index, all) => all[index - (index % 2)] !== 'Date');
  return JSON.stringify([reply.status, headers, reply.text]);
}

const SECTION_ENDPOINTS = ['', '/paths', '/explain/name', '/check', '/status', '/stream'];

test('without a token every endpoint that has values or shape answers 401 and names no application in the audit', async () => {
  const running = await startServer();
  const paths = [...SECTION_ENDPOINTS.map((endpoint) => `/billing/prod${endpoint}`), '/metrics', '/unknown/prod', '/b%20d/prod', '/%ff/x'];
  for (const path of paths) {
    for (const headers of [
      {},
      { authorization: 'Bearer' },
      { authorization: 'Basic eDp5' },
      { authorization: `Bearer ${'x'.repeat(40)}` },
    ]) {
      const reply = await running.ask(path, { token: null, headers });
      expect([path, reply.status, reply.headers['www-authenticate']]).toEqual([path, 401, 'Bearer']);
      expect(reply.headers['content-type']).toBe('application/problem+json');
      expect(reply.json()).toEqual({ type: 'about:blank', title: 'Unauthorized', status: 401, code: 'unauthenticated' });
    }
  }
  for (const entry of running.audit) {
    expect(entry).toMatchObject({ outcome: 'unauthenticated', caller: null, application: null, profile: null, generation: null });
  }
});

test('ungranted, unknown, malformed and absent paths get the same 404', async () => {
  const running = await startServer();
  const paths = SECTION_ENDPOINTS.flatMap((endpoint) => [
    `/orders/prod${endpoint}`,
    `/nothing/prod${endpoint}`,
    `/billing/nothing${endpoint}`,
    `/bil%20ling/prod${endpoint}`,
    `/%ff%fe/prod${endpoint}`,
    `/billing/%${endpoint}`,
    `/${'a'.repeat(65)}/prod${endpoint}`,
    `/.hidden/prod${endpoint}`,
  ]);
  const absent = [
    '/',
    '/billing',
    '/billing/prod/',
    '/billing//prod',
    '//billing/prod',
    '/billing/prod/nothing',
    '/billing/prod/paths/',
    '/./billing/prod',
  ];
  const dots = [
    '/billing/../orders/prod',
    '/billing/.',
    '/../etc/passwd',
    '/billing/prod/explain/',
    '/billing/prod/explain/..',
    '/billing/prod/%70aths',
  ];
  const odd = [
    '/billing/prod/explain/a/b',
    `/billing/prod/explain/${'x'.repeat(513)}`,
    '/metrics/',
    '/healthz/',
    '/HEALTHZ',
    '/(_)/prod',
    '/billing%2Fprod',
  ];
  const first = bytesOf(await running.ask('/nothing/prod'));
  for (const path of [...paths, ...absent, ...dots, ...odd]) expect([path, bytesOf(await running.ask(path))]).toEqual([path, first]);
});

test('a path the server does not have is the same 404 without a credential', async () => {
  const running = await startServer();
  const first = bytesOf(await running.ask('/nothing/prod'));
  for (const path of ['/', '/billing', '/billing/prod/', '/billing/./prod', '/billing/prod/nothing', '*', 'ftp://127.0.0.1/billing/prod']) {
    expect([path, bytesOf(await running.ask(path, { token: null }))]).toEqual([path, first]);
  }
  expect(running.audit.slice(1).map((entry) => [entry.endpoint, entry.outcome])).toEqual(
    Array.from({ length: 7 }, () => ['none', 'not-found']),
  );
});

test('a grant is to the application: every profile of it and nothing else', async () => {
  const running = await startServer();
  expect((await running.ask('/billing/prod', { token: OTHER_TOKEN })).status).toBe(404);
  expect((await running.ask('/orders/prod', { token: OTHER_TOKEN })).status).toBe(200);
  expect((await running.ask('/Billing/prod')).status).toBe(404);
});

test('another method on a path of a known shape is 405, for every caller and every name', async () => {
  const running = await startServer();
  for (const path of [...SECTION_ENDPOINTS.map((endpoint) => `/no/such${endpoint}`), '/billing/prod', '/metrics', '/healthz', '/readyz']) {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const reply = await running.ask(path, { method, token: null });
      expect([path, method, reply.status, reply.headers.allow]).toEqual([path, method, 405, 'GET, HEAD']);
    }
  }
  expect((await running.ask('/a/b/c', { method: 'POST' })).status).toBe(404);
  expect(running.audit.at(0)).toMatchObject({
    caller: null,
    application: null,
    profile: null,
    outcome: 'method-not-allowed',
    endpoint: 'document',
  });
});

test('a URL over 8 KiB is 414, also one longer than the header limit', async () => {
  const running = await startServer();
  for (const length of [8 * 1024 + 1, 100_000]) {
    const reply = await running.ask(`/${'a'.repeat(length)}`);
    expect([length, reply.status, reply.headers['cache-control'], reply.json().code]).toEqual([length, 414, 'no-store', 'uri-too-long']);
  }
  expect((await running.ask(`/billing/prod?${'x'.repeat(8 * 1024 - '/billing/prod?'.length)}`)).status).toBe(200);
  expect(running.audit.map((entry) => [entry.endpoint, entry.outcome]).slice(0, 2)).toEqual(
    Array.from({ length: 2 }, () => ['none', 'malformed']),
  );
});

test('headers over 16 KiB are 431 and bytes that are not HTTP are 400, each with an audit line', async () => {
  const running = await startServer();
  const reply = await running.ask('/billing/prod', { headers: { 'x-flood': 'y'.repeat(17_000) } });
  expect([reply.status, reply.json().code, reply.headers['x-content-type-options']]).toEqual([431, 'headers-too-large', 'nosniff']);
  const text = await speak(running, 'this is not http\r\n\r\n');
  expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(text).toContain('"code":"malformed"');
  expect(running.audit.map((entry) => [entry.endpoint, entry.outcome])).toEqual(Array.from({ length: 2 }, () => ['none', 'malformed']));
});

test('requests that node would answer by itself are answered and recorded like any other', async () => {
  const running = await startServer();
  const noHost = await speak(running, 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n');
  expect(noHost).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  const tunnel = await speak(running, 'CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(tunnel).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/);
  const upgrade = await speak(running, 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n\r\n');
  expect(upgrade).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(running.audit.map((entry) => [entry.endpoint, entry.outcome])).toEqual([
    ['healthz', 'served'],
    ['none', 'not-found'],
    ['healthz', 'served'],
  ]);
});

test('two Host headers, an invalid one, and a version of HTTP other than 1 are refused', async () => {
  const running = await startServer();
  const statusOf = async (version: string, headers: string, method = 'GET'): Promise<number> => {
    const text = await speak(running, `${method} /healthz HTTP/${version}\r\nConnection: close\r\n${headers}\r\n`);
    expect([...text.matchAll(/^(?:Date|Connection|Cache-Control|X-Content-Type-Options):/gm)]).toHaveLength(4);
    return Number(/^HTTP\/1\.1 (\d+) /.exec(text)?.[1]);
  };
  for (const host of ['', 'x', 'x:1', 'a_b.example:', '[::1]:8888', '[fe80::1%eth0]:8888'])
    expect([host, await statusOf('1.1', `Host: ${host}\r\n`)]).toEqual([host, 200]);
  for (const host of ['x y', 'user@x', 'x/y', 'x:y', 'x, y', '[::1', '\xff'])
    expect([host, await statusOf('1.1', `Host: ${host}\r\n`)]).toEqual([host, 400]);
  expect(await statusOf('1.1', 'Host: x\r\nhOST: x\r\n')).toBe(400);
  expect(await statusOf('1.1', 'Host: x\r\nHost: x\r\n', 'HEAD')).toBe(400);
  for (const version of ['1.0', '1.1']) expect(await statusOf(version, '')).toBe(200);
  expect(await statusOf('1.0', 'Host: x\r\nHost: y\r\n')).toBe(400);
  expect(await statusOf('2.0', 'Host: x\r\n')).toBe(400);
  const refused = running.audit.filter(({ endpoint, outcome }) => endpoint === 'none' && outcome === 'malformed');
  expect([running.audit.length, refused.length]).toEqual([19, 11]);
});

test('with two Authorization headers no caller is known, whichever of them is valid', async () => {
  const running = await startServer();
  const [good, bad] = [`Authorization: Bearer ${TOKEN}\r\n`, `authorization: Bearer ${OTHER_TOKEN.toUpperCase()}\r\n`];
  const statusWith = async (headers: string): Promise<string | undefined> =>
    /^HTTP\/1\.1 (\d+) /.exec(await speak(running, `GET /billing/prod HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n`))?.[1];
  expect(await statusWith(good)).toBe('200');
  for (const headers of [good + bad, bad + good, good + good, bad]) expect(await statusWith(headers)).toBe('401');
});

test('a peer that closes its side after its requests gets every response', async () => {
  const running = await startServer();
  const head = `HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n`;
  const requests = ['/billing/prod/check', '/billing/prod', '/billing/prod/check'].map((path) => `GET ${path} ${head}\r\n`);
  for (const sent of [requests.slice(0, 1), requests]) {
    const socket = connect({ port: running.port, host: '127.0.0.1', allowHalfOpen: true });
    socket.end(sent.join(''));
    const text = (await socket.toArray()).join('');
    expect(text.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(sent.length);
  }
  expect(running.audit).toHaveLength(4);
});

test('an upgrade request ends its connection, so that no request behind it waits for a response', async () => {
  const running = await startServer();
  for (const protocol of ['websocket', 'h2c']) {
    const upgrade = `GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`;
    const text = await speak(running, `${upgrade}GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\nConnection: close\r\n/);
    expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
  }
  expect(running.audit).toHaveLength(2);
});

test('a request target in absolute form is its path, whatever its host', async () => {
  const running = await startServer({ toml: SERVER_TOML.replace('[server]', '[server]\nhealth_bind = "127.0.0.1:0"') });
  const plain = await running.ask('/billing/prod');
  for (const host of [`127.0.0.1:${running.port}`, 'other.example', 'A_b-c.example:', '[::1]:8888', '[fe80::1%25eth0]', 'billing']) {
    for (const scheme of ['http', 'https', 'HTTP']) {
      expect(bytesOf(await running.ask(`${scheme}://${host}/billing/prod`))).toBe(bytesOf(plain));
    }
  }
  expect(new Set(running.audit.map((entry) => JSON.stringify({ ...entry, time: '' }))).size).toBe(1);
  const statusOf = async (target: string, options = {}): Promise<number> => (await running.ask(target, options)).status;
  expect(await statusOf('http://h/billing/prod/explain/pool.maxSize?a=b')).toBe(200);
  expect(await statusOf('http://h/billing/prod', { token: null })).toBe(401);
  expect(await statusOf('http://h/billing/prod', { token: OTHER_TOKEN })).toBe(404);
  expect(await statusOf('http://h/billing/prod', { method: 'POST' })).toBe(405);
  expect(await statusOf(`http://${'h'.repeat(8 * 1024)}/healthz`)).toBe(414);
  expect((await ask(running.server.healthAddress!.port, 'http://h/readyz')).json()).toEqual({ ready: true });
  expect((await ask(running.server.healthAddress!.port, `http://${'h'.repeat(8 * 1024)}/healthz`)).status).toBe(414);
});

test('an absolute request target with another scheme, user information or no host is the 404 of any unknown path', async () => {
  const running = await startServer();
  const unknown = bytesOf(await running.ask('/a/b/c/d'));
  const targets = [
    'http://h',
    'http://h/',
    'http://h?/billing/prod',
    'http://h//billing/prod',
    'http://h/billing/prod/',
    'http://h/./billing/prod',
    'http:///billing/prod',
    'http://user@h/billing/prod',
    'http://user:password@h/billing/prod',
    'http://h:x/billing/prod',
    'ftp://h/billing/prod',
    'ws://h/billing/prod',
    'http://h/http://h/billing/prod',
    '/http://h/billing/prod',
    '*',
  ];
  for (const target of targets) expect([target, bytesOf(await running.ask(target))]).toEqual([target, unknown]);
});

test('a peer that asks for a tunnel and resets the connection affects no other', async () => {
  const running = await startServer();
  for (let round = 0; round < 30; round++) {
    const socket = connect(running.port, '127.0.0.1');
    const closed = once(socket, 'close');
    socket.on('error', () => undefined);
    // Before, while and after the answer is on its way.
    socket.write('CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n', () => setTimeout(() => socket.resetAndDestroy(), round % 3));
    await closed;
  }
  expect((await running.ask('/billing/prod')).status).toBe(200);
});

test('peers that never finish their headers are cut off at the deadline', async () => {
  const running = await startServer({ deadlines: { headersMs: 100 } });
  const [silent, half] = await Promise.all([speak(running, ''), speak(running, 'GET /billing/prod HTTP/1.1\r\nHost: x\r\n')]);
  for (const text of [silent, half]) expect(text).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n[^]*"code":"request-timeout"/);
  expect(running.audit.map((entry) => [entry.endpoint, entry.outcome])).toEqual([
    ['none', 'malformed'],
    ['none', 'malformed'],
  ]);
  expect((await running.ask('/billing/prod')).status).toBe(200);
});

test('a body that turns out malformed adds neither a second response nor a second line to its request', async () => {
  const running = await startServer();
  const head = `GET /billing/prod HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nTransfer-Encoding: chunked\r\n\r\n`;
  const together = await speak(running, `${head}not a chunk\r\n`);
  const socket = connect(running.port, '127.0.0.1');
  let apart = '';
  socket.on('data', (chunk) => (apart += chunk.toString()));
  socket.write(head);
  await once(socket, 'data');
  socket.write('not a chunk\r\n');
  await once(socket, 'close');
  for (const text of [together, apart]) expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
  expect(running.audit.map((entry) => entry.outcome)).toEqual(['served', 'served']);
});

test('every token finds its client, and a token that differs in one character finds none', async () => {
  const clients = Array.from(
    { length: 40 },
    (_, index) =>
      `[[server.clients]]\nname = "client-${index}"\ntoken = "token-number-${index}-${'x'.repeat(32)}"\napplications = ["billing"]\n`,
  );
  const running = await startServer({ toml: SERVER_TOML + clients.join('') });
  for (let index = 0; index < 40; index++) {
    const token = `token-number-${index}-${'x'.repeat(32)}`;
    expect((await running.ask('/billing/prod', { token })).status).toBe(200);
    expect((await running.ask('/billing/prod', { token: `${token.slice(0, -1)}y` })).status).toBe(401);
    expect(running.audit.at(-2)).toMatchObject({ caller: `client-${index}` });
  }
});

test('a URL is not decoded twice', async () => {
  const running = await startServer();
  expect((await running.ask('/b%2569lling/prod')).status).toBe(404);
  expect((await ask(running.port, '/..%252f..%252fetc/passwd', { token: TOKEN })).status).toBe(404);
});

/** Writes bytes to the port and returns what came back until the server closed. */
function speak(running: RunningServer, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(running.port, '127.0.0.1', () => socket.write(bytes));
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString()));
    socket.on('error', reject);
    socket.on('close', () => resolve(text));
  });
}
