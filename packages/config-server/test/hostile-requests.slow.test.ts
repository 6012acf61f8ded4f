import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startCli, type CliServer } from './cli-server.ts';
import { exchange, exchangeRaw } from './http-exchange.ts';
import { folderWith, serverToml, TOKENS } from './served-folder.ts';

async function start(): Promise<{ server: CliServer; folder: string }> {
  const folder = await folderWith({
    'billing.toml': '[billing]\na = 1\n',
    'secret.toml': '[secret]\nstolen = "contents of another file"\n',
    'server.toml': serverToml([{ application: 'billing', profile: 'production', files: ['billing.toml'] }]),
  });
  return { server: await startCli(join(folder, 'server.toml')), folder };
}

const serves = async (server: CliServer): Promise<void> => {
  expect(await exchange(server.url, '/billing/production', { token: TOKENS.billing })).toMatchObject({ status: 200, body: '{"a":1}' });
};

// CVE-2019-3799, CVE-2020-5405, CVE-2020-5410 and CVE-2026-22739 of Spring Cloud Config and their kin: encoded and doubly encoded
// separators, its `(_)` escape for a slash, labels, overlong UTF-8, backslashes, NUL.
const traversals = [
  '/billing/production/..%2f..%2f..%2fetc%2fpasswd',
  '/billing/production/master/..%252F..%252F..%252F..%252Fetc%252Fpasswd',
  '/billing/production/..%252f..%252fsecret.toml%23',
  '/..%252F..%252F..%252Fetc%252Fpasswd%23foo/development',
  '/..%2f..%2fsecret.toml%23/production',
  '/billing(_)..(_)..(_)secret.toml/production',
  '/..(_)..(_)..(_)etc(_)passwd/production',
  '/billing/(_)(_)etc(_)passwd',
  '/billing/production/..(_)secret.toml',
  '/billing/production/master/../../secret.toml',
  '/billing/../billing/production',
  '/./billing/production',
  '/billing/./production',
  '/billing/production/.',
  '/billing/production/..',
  '/billing/%2e%2e/billing/production',
  '/%2e/billing/production',
  '/billing%2fproduction',
  '/billing%2Fproduction/paths',
  '/billing%252fproduction/x',
  '/billing\\production',
  '/billing/..\\..\\secret.toml',
  '/billing/production%5c..%5csecret.toml',
  '/billing/production%00',
  '/billing%00/production',
  '/billing/production%00.toml',
  '/billing/production;v=1',
  '/billing;/production',
  '/billing/production%3f',
  '/billing/production%23',
  '/billing/%c0%ae%c0%ae',
  '/%c0%ae%c0%ae%c0%af/production',
  '/billing/production%0d%0aset-cookie:x=1',
  '/billing/production%20',
  '/%20billing/production',
  '/billing/ｐroduction',
  '/billing/production/explain/..',
  '/billing/production/explain/a/b',
  '/__proto__/production',
  '/constructor/prototype',
  '/billing/__proto__',
  '/billing/production.json',
  '/billing-production.yml',
  '/billing/production/master',
  '//billing/production',
  '/billing//production',
  'billing/production',
  '*',
];

test('path-traversal strings find nothing but the one 404, and the audit log keeps one line per request', async () => {
  const { server } = await start();
  for (const path of traversals) {
    const raw = await exchangeRaw(
      server.port,
      Buffer.from(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${TOKENS.billing}\r\n\r\n`, 'utf8'),
    );
    expect({ path, status: raw.slice(0, 12) }).toEqual({
      path,
      status: path.startsWith('/') && !path.includes('ｐ') ? 'HTTP/1.1 404' : raw.match(/^HTTP\/1.1 40[04]/)?.[0],
    });
    expect(raw).not.toContain('stolen');
    expect(raw).not.toContain('root:');
    expect(raw.toLowerCase()).not.toContain('set-cookie');
  }
  await serves(server);
  for (const line of server.audit()) {
    expect(Object.keys(line)).toEqual(['time', 'caller', 'application', 'profile', 'endpoint', 'outcome', 'generation']);
    for (const name of ['application', 'profile'] as const) expect(line[name] ?? 'none').toMatch(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/);
  }
  expect(server.printed()).not.toContain('passwd');
});

test('a percent-encoded letter is the letter: nothing else is decoded twice', async () => {
  const { server } = await start();
  expect((await exchange(server.url, '/%62illing/productio%6e', { token: TOKENS.billing })).status).toBe(200);
  expect((await exchange(server.url, '/%2562illing/production', { token: TOKENS.billing })).status).toBe(404);
});

test('bytes that are not UTF-8 in path and header get a response and change nothing', async () => {
  const { server } = await start();
  const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');
  for (const target of [
    '/\xff\xfe/production',
    '/billing/\x80\x81',
    '/billing/production/explain/\xc3\x28',
    '/billing/production/explain/%c3%28',
  ]) {
    const raw = await exchangeRaw(
      server.port,
      bytes(`GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${TOKENS.billing}\r\n\r\n`),
    );
    expect({ target, status: raw.slice(0, 12) }).toEqual({ target, status: expect.stringMatching(/^HTTP\/1\.1 40[04]$/) });
  }
  const token = await exchangeRaw(
    server.port,
    bytes('GET /billing/production HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer \xff\xfe\xfd\r\n\r\n'),
  );
  expect(token).toMatch(/^HTTP\/1\.1 401/);
  await serves(server);
});

test.each([9_000, 100_000, 1_000_000])('a URL of %i bytes is refused with 414 and is not kept', async (length) => {
  const { server } = await start();
  const raw = await exchangeRaw(server.port, `GET /${'a'.repeat(length)} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
  expect(raw.slice(0, 12)).toBe('HTTP/1.1 414');
  expect(server.printed()).not.toContain('aaaaaaaa');
  await serves(server);
});

test.each([
  ['many headers', 'x-flood: 1\r\n'.repeat(20_000)],
  ['one endless header', `x-flood: ${'f'.repeat(200_000)}\r\n`],
  ['an endless token', `authorization: Bearer ${'t'.repeat(200_000)}\r\n`],
])('%s are refused and the server continues', async (_, headers) => {
  const { server } = await start();
  const raw = await exchangeRaw(server.port, `GET /healthz HTTP/1.1\r\nhost: x\r\n${headers}\r\n`);
  expect(raw.slice(0, 12)).toMatch(/^(HTTP\/1\.1 431)?$/);
  await serves(server);
});

test.each([
  ['nothing HTTP', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc'],
  ['an unknown method', 'FROBNICATE /billing/production HTTP/1.1\r\nhost: x\r\n\r\n'],
  ['no host', 'GET /billing/production HTTP/1.1\r\n\r\n'],
  ['two lengths', 'POST /billing/production HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'],
  ['length and chunks', 'GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['a bare line feed', 'GET /healthz HTTP/1.1\nhost: x\n\n'],
  ['HTTP/0.9', 'GET /billing/production\r\n\r\n'],
  ['HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
])('a request with %s gets a plain refusal or a closed connection', async (_, bytes) => {
  const { server } = await start();
  const raw = await exchangeRaw(server.port, Buffer.from(bytes, 'latin1'), 500);
  expect(raw).not.toMatch(/HTTP\/1\.1 (200|5\d\d)/);
  await serves(server);
});

test('requests one after the other on one connection are each judged by their own token', async () => {
  const { server } = await start();
  const first = `GET /billing/production HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKENS.billing}\r\n\r\n`;
  const second = 'GET /billing/production HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';
  const raw = await exchangeRaw(server.port, first + second);
  expect(raw.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 401']);
});

test('a body on a GET is ignored and never buffered', async () => {
  const { server } = await start();
  const socket = connect(server.port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined);
  let answer = '';
  socket.on('data', (chunk) => (answer += chunk.toString()));
  socket.write(
    `GET /billing/production HTTP/1.1\r\nhost: x\r\ncontent-length: 10000000000\r\nauthorization: Bearer ${TOKENS.billing}\r\n\r\n`,
  );
  await expect.poll(() => answer).toMatch(/^HTTP\/1\.1 200/);
  const block = Buffer.alloc(1_000_000, 'x');
  for (let count = 0; count < 50 && !socket.destroyed; count += 1) {
    await new Promise((resolve) => {
      const accepted = socket.write(block, resolve);
      if (!accepted) setTimeout(resolve, 20);
    });
  }
  await serves(server);
});

test('half-open connections are closed at the header deadline and do not keep others from being served', { timeout: 600_000 }, async () => {
  const { server } = await start();
  const sockets: Socket[] = [];
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
  let open = 0;
  for (let index = 0; index < 300; index += 1) {
    const socket = connect(server.port, '127.0.0.1');
    sockets.push(socket);
    open += 1;
    socket.on('error', () => undefined);
    socket.on('close', () => (open -= 1));
    socket.resume();
    // A third says nothing, a third half a request line, a third headers without end, one byte at a time.
    if (index % 3 === 1) socket.write('GET /billing/prod');
    if (index % 3 === 2) {
      socket.write('GET /billing/production HTTP/1.1\r\nx: ');
      const drip = setInterval(() => socket.write('x'), 1_000);
      socket.on('close', () => clearInterval(drip));
    }
  }
  for (let count = 0; count < 20; count += 1) await serves(server);
  await expect.poll(() => open, { timeout: 300_000, interval: 250 }).toBeLessThanOrEqual(0);
  await serves(server);
});
