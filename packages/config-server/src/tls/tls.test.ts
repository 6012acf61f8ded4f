import { once } from 'node:events';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect as connectTcp } from 'node:net';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { inspect } from 'node:util';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { createCertificate, type Certificate } from '../../test/certificates.ts';
import {
  ask,
  eventually,
  FILES,
  OTHER_TOKEN,
  SERVER_TOML,
  startServer,
  TOKEN,
  writeFiles,
  type RunningServer,
  type StartOptions,
} from '../../test/running-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { readServerConfig } from '../config/config.ts';

let authority: Certificate;
let leaf: Certificate;
let client: Certificate;
let foreign: Certificate;

beforeAll(() => {
  authority = createCertificate({ name: 'test authority', authority: true });
  leaf = createCertificate({ name: 'localhost', issuer: authority, hosts: ['localhost', '127.0.0.1'] });
  client = createCertificate({ name: 'a client', issuer: authority });
  const foreignAuthority = createCertificate({ name: 'foreign authority', authority: true });
  foreign = createCertificate({ name: 'a stranger', issuer: foreignAuthority });
});

const TLS_TOML = `${SERVER_TOML}\n[server.tls]\ncertificate = "server.pem"\nkey = "server.key"\n`;
const MUTUAL_TOML = `${TLS_TOML}client_ca = "ca.pem"\n`;

async function tlsFolder(key = leaf.key, certificate = leaf.cert + authority.cert): Promise<string> {
  const folder = await temporaryFolder();
  await writeFiles(folder, { ...FILES, 'server.pem': certificate, 'ca.pem': authority.cert });
  await writeFile(join(folder, 'server.key'), key, { mode: 0o400 });
  return folder;
}

async function startTls(toml: string, options: StartOptions = {}): Promise<RunningServer> {
  return startServer({ folder: await tlsFolder(), toml, ...options });
}

/** What a handshake followed by a request gives: the answer, or undefined when the connection was not let through. */
async function request(running: RunningServer, path: string, tls: object, token?: string | null) {
  return running.ask(path, { tls: { ca: authority.cert, ...tls }, ...(token === undefined ? {} : { token }) }).catch(() => undefined);
}

async function problemsOf(folder: string, toml: string): Promise<string[]> {
  await writeFile(join(folder, 'server.toml'), toml);
  return readServerConfig(join(folder, 'server.toml'), {}).problems.map((problem) => `${problem.key}: ${problem.message}`);
}

test('the server terminates TLS and offers http/1.1 only', async () => {
  const running = await startTls(TLS_TOML);
  expect((await request(running, '/billing/prod', {}))?.status).toBe(200);
  const socket = await handshake(running, { ALPNProtocols: ['h2', 'http/1.1'] });
  expect(socket.alpnProtocol).toBe('http/1.1');
  expect((await request(running, '/billing/prod', {}, null))?.status).toBe(401);
});

test.each(['pkcs8', 'pkcs1', 'sec1'] as const)('a private key as %s is accepted', async (type) => {
  const pair = createCertificate({ name: 'localhost', issuer: authority, hosts: ['127.0.0.1'], keyType: type === 'pkcs1' ? 'rsa' : 'ec' });
  const key = pair.privateKey.export({ type, format: 'pem' }).toString();
  const running = await startServer({ folder: await tlsFolder(key, pair.cert), toml: TLS_TOML });
  expect((await request(running, '/billing/prod', {}))?.status).toBe(200);
});

test('with client_ca a caller needs a certificate that chains to it, and each refused one writes one audit line', async () => {
  const running = await startTls(MUTUAL_TOML);
  const mine = { cert: client.cert, key: client.key };
  expect((await request(running, '/billing/prod', mine))?.status).toBe(200);
  running.audit.length = 0;
  expect(await request(running, '/billing/prod', {})).toBeUndefined();
  expect(await request(running, '/billing/prod', { cert: foreign.cert, key: foreign.key })).toBeUndefined();
  const expired = createCertificate({
    name: 'late',
    issuer: authority,
    notBefore: new Date(Date.now() - 9e8),
    notAfter: new Date(Date.now() - 8e8),
  });
  expect(await request(running, '/billing/prod', { cert: expired.cert, key: expired.key })).toBeUndefined();
  await eventually(() => running.audit.length >= 3, 'audit lines');
  expect(running.audit).toHaveLength(3);
  for (const entry of running.audit) {
    expect(entry).toMatchObject({
      endpoint: 'tls',
      outcome: 'unauthenticated',
      caller: null,
      application: null,
      profile: null,
      generation: null,
    });
  }
});

test('a client certificate neither replaces the token nor names the caller', async () => {
  const running = await startTls(MUTUAL_TOML);
  const mine = { cert: client.cert, key: client.key };
  expect((await request(running, '/billing/prod', mine, null))?.status).toBe(401);
  expect((await request(running, '/billing/prod', mine, OTHER_TOKEN))?.status).toBe(404);
  expect((await request(running, '/orders/prod', mine, OTHER_TOKEN))?.status).toBe(200);
});

test('a client certificate may chain to the root through an intermediate authority, which alone is refused at the start', async () => {
  const intermediate = createCertificate({ name: 'intermediate', issuer: authority, authority: true });
  const below = createCertificate({ name: 'below', issuer: intermediate });
  const folder = await tlsFolder();
  await writeFile(join(folder, 'ca.pem'), intermediate.cert + authority.cert);
  const running = await startServer({ folder, toml: MUTUAL_TOML });
  expect((await request(running, '/billing/prod', { cert: below.cert, key: below.key }))?.status).toBe(200);
  const alone = await tlsFolder();
  await writeFile(join(alone, 'ca.pem'), intermediate.cert);
  expect(await problemsOf(alone, MUTUAL_TOML)).toEqual([expect.stringMatching(/^server\.tls\.client_ca: .* holds no root certificate/)]);
});

test('plain HTTP and a handshake that never comes are refused with one audit line each', async () => {
  const running = await startTls(TLS_TOML, { deadlines: { handshakeMs: 100 } });
  await expect(running.ask('/billing/prod')).rejects.toThrow(/socket hang up|ECONNRESET/);
  await eventually(() => running.audit.length === 1, 'the line of the plain request');
  const silent = connectTcp(running.port, '127.0.0.1');
  silent.on('error', () => undefined);
  await eventually(() => running.audit.length === 2, 'the line of the silent peer');
  expect(running.audit.map((entry) => [entry.endpoint, entry.outcome])).toEqual([
    ['tls', 'unauthenticated'],
    ['tls', 'unauthenticated'],
  ]);
  await eventually(() => silent.destroyed, 'the silent peer to be cut off');
});

test('a peer that closes its side after its request gets the response, and one that leaves before the handshake is not waited for', async () => {
  const running = await startTls(TLS_TOML, { deadlines: { handshakeMs: 3_600_000 } });
  const options = { port: running.port, host: '127.0.0.1', ca: authority.cert, allowHalfOpen: true };
  const socket = connect(options as ConnectionOptions);
  socket.end(`GET /billing/prod/check HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`);
  expect((await socket.toArray()).join('')).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  const left = connectTcp({ port: running.port, host: '127.0.0.1', allowHalfOpen: true });
  left.end();
  expect(await left.toArray()).toEqual([]);
});

test('health_bind answers the probes in plain HTTP and nothing else', async () => {
  const running = await startTls(MUTUAL_TOML.replace('[server]', '[server]\nhealth_bind = "127.0.0.1:0"'));
  const { port } = running.server.healthAddress!;
  expect((await ask(port, '/healthz', { token: null })).json()).toEqual({ status: 'ok' });
  expect((await ask(port, '/readyz', { token: null })).json()).toEqual({ ready: true });
  const missing = await ask(port, '/no/such/path');
  for (const path of ['/billing/prod', '/metrics', '/billing/prod/status']) expect((await ask(port, path)).text).toBe(missing.text);
  expect((await ask(port, '/healthz', { method: 'POST' })).status).toBe(405);
  expect((await ask(port, `/healthz?${'x'.repeat(8 * 1024)}`)).status).toBe(414);
});

test('new certificates take effect live, and an open connection continues', async () => {
  const running = await startTls(TLS_TOML);
  const before = await handshake(running);
  const next = createCertificate({ name: 'localhost', issuer: authority, hosts: ['127.0.0.1'] });
  await chmod(join(running.folder, 'server.key'), 0o600);
  await running.write('server.key', next.key);
  await running.write('server.pem', next.cert);
  const serial = before.getPeerX509Certificate()!.serialNumber;
  await eventually(async () => (await handshake(running)).getPeerX509Certificate()!.serialNumber !== serial, 'the new certificate');
  before.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect((await before.toArray()).join('')).toMatch(/^HTTP\/1\.1 200 /);
});

test('certificates follow what the socket serves, also when the tls table was gone for a while', async () => {
  const running = await startTls(TLS_TOML);
  const serial = (await handshake(running)).getPeerX509Certificate()!.serialNumber;
  const readAgain = (): number => running.log.filter((line) => line.includes('was read again')).length;
  await running.write('server.toml', SERVER_TOML);
  await eventually(() => readAgain() === 1, 'the edit without the table');
  const next = createCertificate({ name: 'localhost', issuer: authority, hosts: ['127.0.0.1'] });
  await chmod(join(running.folder, 'server.key'), 0o600);
  await running.write('server.key', next.key);
  await running.write('server.pem', next.cert);
  await running.write('server.toml', TLS_TOML);
  await eventually(async () => (await handshake(running)).getPeerX509Certificate()!.serialNumber !== serial, 'the new certificate');
});

test('a tls table added while a plain socket is open waits for the next start, and renewing its certificate changes nothing', async () => {
  const running = await startServer({ folder: await tlsFolder() });
  await running.write('server.toml', TLS_TOML);
  await eventually(() => running.log.some((line) => line.includes('server.tls changed')), 'the message');
  const next = createCertificate({ name: 'localhost', issuer: authority, hosts: ['127.0.0.1'] });
  const readAgain = (): number => running.log.filter((line) => line.includes('was read again')).length;
  const edits = readAgain();
  await chmod(join(running.folder, 'server.key'), 0o600);
  await running.write('server.key', next.key);
  await running.write('server.pem', next.cert);
  await eventually(() => readAgain() > edits, 'the renewed certificate');
  expect((await running.ask('/readyz', { token: null })).status).toBe(200);
});

test.each([
  ['expired at 2020-01-02', { notBefore: new Date('2020-01-01T00:00:00Z'), notAfter: new Date('2020-01-02T00:00:00Z') }],
  ['is not valid before 2999-01-01', { notBefore: new Date('2999-01-01T00:00:00Z'), notAfter: new Date('2999-01-02T00:00:00Z') }],
])('a certificate that %s is served with one warning, at the start and when it is swapped in', async (dates, validity) => {
  const dated = createCertificate({ name: 'localhost', issuer: authority, hosts: ['127.0.0.1'], ...validity });
  const warnings = (running: RunningServer): string[] => running.log.filter((line) => line.includes('WARNING'));
  const started = await startServer({ folder: await tlsFolder(dated.key, dated.cert), toml: TLS_TOML });
  expect(warnings(started)).toEqual([
    expect.stringMatching(new RegExp(`the certificate of server\\.tls\\.certificate ${dates}.* \\(/.*/server\\.pem\\)`)),
  ]);
  const running = await startTls(TLS_TOML);
  expect(warnings(running)).toEqual([]);
  await chmod(join(running.folder, 'server.key'), 0o600);
  await running.write('server.key', dated.key);
  await running.write('server.pem', dated.cert);
  await eventually(() => warnings(running).length === 1, 'the warning');
});

test('a client authority added by an edit takes effect with the next handshake', async () => {
  const running = await startTls(TLS_TOML);
  await running.write('server.toml', MUTUAL_TOML);
  await eventually(async () => (await request(running, '/billing/prod', {})) === undefined, 'strangers to be refused');
  expect((await request(running, '/billing/prod', { cert: client.cert, key: client.key }))?.status).toBe(200);
});

test.each(['TLSv1.3', 'TLSv1.2'] as const)(
  'with client_ca a session is not resumed: every handshake presents a certificate (%s)',
  async (maxVersion) => {
    const running = await startTls(MUTUAL_TOML);
    const mine = { cert: client.cert, key: client.key, maxVersion };
    const session = await sessionOf(running, mine);
    expect((await handshake(running, { ...mine, session })).isSessionReused()).toBe(false);
    expect(await request(running, '/billing/prod', { maxVersion, session })).toBeUndefined();
    const open = await startTls(TLS_TOML);
    expect((await handshake(open, { maxVersion, session: await sessionOf(open, { maxVersion }) })).isSessionReused()).toBe(true);
  },
);

test('a client authority that is replaced or added takes effect for resumed sessions too', async () => {
  const running = await startTls(MUTUAL_TOML);
  const mine = { cert: client.cert, key: client.key };
  const session = await sessionOf(running, mine);
  expect((await request(running, '/billing/prod', { ...mine, session }))?.status).toBe(200);
  const next = createCertificate({ name: 'next authority', authority: true });
  const newcomer = createCertificate({ name: 'a newcomer', issuer: next });
  await running.write('ca.pem', next.cert);
  await eventually(async () => (await request(running, '/billing/prod', mine)) === undefined, 'the old authority to be refused');
  expect(await request(running, '/billing/prod', { ...mine, session })).toBeUndefined();
  expect(await request(running, '/billing/prod', { session })).toBeUndefined();
  expect((await request(running, '/billing/prod', { cert: newcomer.cert, key: newcomer.key }))?.status).toBe(200);

  const open = await startTls(TLS_TOML);
  const early = await sessionOf(open, {});
  await open.write('server.toml', MUTUAL_TOML);
  await eventually(async () => (await request(open, '/billing/prod', {})) === undefined, 'strangers to be refused');
  expect(await request(open, '/billing/prod', { session: early })).toBeUndefined();
  await open.write('server.toml', TLS_TOML);
  await eventually(async () => (await request(open, '/billing/prod', {}))?.status === 200, 'strangers to be let in again');
});

test('a key file that others can read is refused, and the message names the fix', async () => {
  const folder = await tlsFolder();
  for (const mode of [0o440, 0o404, 0o640, 0o644, 0o420]) {
    await chmod(join(folder, 'server.key'), mode);
    expect((await problemsOf(folder, TLS_TOML)).join()).toMatch(/server\.tls\.key: .*chmod 0400/);
  }
  for (const mode of [0o400, 0o600]) {
    await chmod(join(folder, 'server.key'), mode);
    expect(await problemsOf(folder, TLS_TOML)).toEqual([]);
  }
});

test('a crl key, unknown keys, a foreign key, an encrypted key and files that are not PEM are refused without a byte of the key', async () => {
  const folder = await tlsFolder();
  expect(await problemsOf(folder, `${TLS_TOML}crl = "x"\n`)).toEqual([
    expect.stringMatching(/^server\.tls\.crl: revocation is not checked/),
  ]);
  expect(await problemsOf(folder, `${TLS_TOML}ciphers = "x"\n`)).toEqual([
    expect.stringMatching(/^server\.tls\.ciphers: is not a known key/),
  ]);
  const encrypted = leaf.privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' }).toString();
  const cases: [string, string, RegExp][] = [
    [client.key, leaf.cert, /^server\.tls\.key: \/.*\/server\.key does not belong to the first certificate of \/.*\/server\.pem/],
    [encrypted, leaf.cert, /^server\.tls\.key: \/.*\/server\.key is encrypted/],
    [
      '-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n',
      leaf.cert,
      /^server\.tls\.key: \/.*\/server\.key is not a private key/,
    ],
    [leaf.key, 'nothing', /^server\.tls\.certificate: \/.*\/server\.pem does not hold PEM certificates/],
  ];
  for (const [key, certificate, message] of cases) {
    const place = await tlsFolder(key, certificate);
    const problems = await problemsOf(place, TLS_TOML);
    expect(problems).toEqual([expect.stringMatching(message)]);
    expect(problems.join()).not.toMatch(/c2VjcmV0|MII|BEGIN/);
  }
  const badAuthority = await tlsFolder();
  await writeFile(join(badAuthority, 'ca.pem'), leaf.key);
  expect(await problemsOf(badAuthority, MUTUAL_TOML)).toEqual([
    expect.stringMatching(/^server\.tls\.client_ca: \/.*\/ca\.pem does not hold PEM certificates$/),
  ]);
  const weak = createCertificate({ name: 'localhost', issuer: authority, keyType: 'weak-rsa' });
  expect(await problemsOf(await tlsFolder(weak.key, weak.cert), TLS_TOML)).toEqual([
    expect.stringMatching(/^server\.tls\.certificate: the TLS library refuses \/.*\/server\.pem with \/.*\/server\.key$/),
  ]);
  const missing = await problemsOf(folder, TLS_TOML.replace('"server.pem"', '"nowhere.pem"'));
  expect(missing).toEqual([expect.stringMatching(/^server\.tls\.certificate: .*nowhere\.pem cannot be read \(ENOENT\)/)]);
});

test('printing a configuration does not show the key', async () => {
  const folder = await tlsFolder();
  await writeFile(join(folder, 'server.toml'), TLS_TOML);
  const { config } = readServerConfig(join(folder, 'server.toml'), {});
  expect(inspect(config, { depth: 9, showHidden: true }) + JSON.stringify(config)).not.toContain('PRIVATE KEY');
});

/** What a later connection needs to go on with this one's session. */
async function sessionOf(running: RunningServer, options: ConnectionOptions): Promise<Buffer> {
  const socket = await handshake(running, options);
  // Before TLS 1.3 the session is part of the handshake.
  const before = socket.getProtocol() === 'TLSv1.2' ? socket.getSession() : undefined;
  if (before !== undefined) return before;
  const session = once(socket, 'session') as Promise<[Buffer]>;
  socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  socket.resume();
  return (await session)[0];
}

function handshake(running: RunningServer, options: ConnectionOptions = {}): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: running.port, ca: authority.cert, ...options }, () => resolve(socket));
    socket.on('error', reject);
    onTestFinished(() => void socket.destroy());
  });
}
