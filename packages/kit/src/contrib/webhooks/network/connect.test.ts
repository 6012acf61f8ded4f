import { Resolver } from 'node:dns/promises';
import { createSocket } from 'node:dgram';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createTcpServer } from 'node:net';
import { createServer as createHttpsServer } from 'node:https';
import type { ServerOptions } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { generate } from 'selfsigned';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { systemResolver } from './connect.ts';
import { httpTransport } from './transport.ts';
import type { HttpTransportOptions, TransportResult } from './transport.ts';
import { URLPolicy } from './url-policy.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Certificate {
  readonly key: string;
  readonly cert: string;
}

/** A certificate that is its own authority, made for this run. */
async function certificate(names: { dns?: string; ip?: string }, notAfterDate = new Date(Date.now() + 86_400_000)): Promise<Certificate> {
  const altNames = [
    ...(names.dns === undefined ? [] : [{ type: 2 as const, value: names.dns }]),
    ...(names.ip === undefined ? [] : [{ type: 7 as const, ip: names.ip }]),
  ];
  const made = await generate([{ name: 'commonName', value: names.dns ?? names.ip ?? '' }], {
    keyType: 'ec',
    notBeforeDate: new Date(notAfterDate.getTime() - 30 * 86_400_000),
    notAfterDate,
    extensions: [
      { name: 'basicConstraints', cA: true },
      { name: 'subjectAltName', altNames },
    ],
  });
  return { key: made.private, cert: made.cert };
}

async function listen(server: Server): Promise<{ port: number; connections: () => number }> {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket.on('error', () => {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}

function httpsReceiver(options: ServerOptions): Promise<{ port: number; connections: () => number }> {
  const server = createHttpsServer(options, (request, response) => response.end(String((request.socket as TLSSocket).servername)));
  server.on('tlsClientError', () => {});
  return listen(server);
}

async function post(url: string, options: HttpTransportOptions): Promise<TransportResult> {
  const transport = httpTransport({
    policy: URLPolicy({ allowPrivateNetworks: true }),
    resolve: async () => ['127.0.0.1'],
    timeoutMs: 10_000,
    ...options,
  });
  cleanups.push(() => transport.close());
  return transport.send({ url, headers: {}, body: '{}' });
}

describe('TLS', () => {
  let good: Certificate;
  let other: Certificate;
  beforeAll(async () => {
    [good, other] = await Promise.all([
      certificate({ dns: 'hooks.example.com', ip: '127.0.0.1' }),
      certificate({ dns: 'other.example.com' }),
    ]);
  });

  test('the certificate is checked against the name of the URL, which is also what the receiver is asked for', async () => {
    const { port } = await httpsReceiver(good);
    expect(await post(`https://hooks.example.com:${port}/`, { ca: good.cert })).toMatchObject({
      kind: 'response',
      status: 200,
      bodyExcerpt: 'hooks.example.com',
    });
  });

  test('an address in the URL is checked against the addresses of the certificate, and no name is sent', async () => {
    const { port } = await httpsReceiver(good);
    expect(await post(`https://127.0.0.1:${port}/`, { ca: good.cert })).toMatchObject({ status: 200, bodyExcerpt: 'false' });
  });

  test('a certificate for another name is refused', async () => {
    const { port } = await httpsReceiver(other);
    expect(await post(`https://hooks.example.com:${port}/`, { ca: other.cert })).toMatchObject({
      reason: 'tls',
      error: 'The TLS handshake failed (ERR_TLS_CERT_ALTNAME_INVALID).',
    });
  });

  test('an address the certificate does not name is refused', async () => {
    const { port } = await httpsReceiver(other);
    expect(await post(`https://127.0.0.1:${port}/`, { ca: other.cert })).toMatchObject({ reason: 'tls' });
  });

  test('a certificate of an unknown authority is refused, whatever the environment says', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    const { port } = await httpsReceiver(good);
    expect(await post(`https://hooks.example.com:${port}/`, {})).toMatchObject({ reason: 'tls' });
  });

  test('an expired certificate is refused', async () => {
    const expired = await certificate({ dns: 'hooks.example.com' }, new Date(Date.now() - 86_400_000));
    const { port } = await httpsReceiver(expired);
    expect(await post(`https://hooks.example.com:${port}/`, { ca: expired.cert })).toMatchObject({
      reason: 'tls',
      error: 'The TLS handshake failed (CERT_HAS_EXPIRED).',
    });
  });

  test('a receiver that speaks no TLS is refused', async () => {
    const { port } = await listen(createTcpServer((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n')));
    expect(await post(`https://hooks.example.com:${port}/`, {})).toMatchObject({ reason: 'tls' });
  });

  test('a receiver that asks for a client certificate is a TLS or connection failure, not an exception', async () => {
    const { port } = await httpsReceiver({ ...good, requestCert: true, rejectUnauthorized: true });
    const result = await post(`https://hooks.example.com:${port}/`, { ca: good.cert });
    expect(['tls', 'connection']).toContain(result.kind === 'failure' ? result.reason : result.kind);
  });

  test('outdated protocol versions are refused', async () => {
    const { port } = await httpsReceiver({ ...good, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' });
    expect(await post(`https://hooks.example.com:${port}/`, { ca: good.cert })).toMatchObject({ reason: 'tls' });
  });

  test.each([
    ['a reset on accepting', 'connection', (socket: Socket) => socket.resetAndDestroy()],
    ['a reset after the hello', 'connection', (socket: Socket) => socket.once('data', () => socket.resetAndDestroy())],
    ['an end after the hello', 'connection', (socket: Socket) => socket.once('data', () => socket.end())],
    ['silence after the hello', 'timeout', () => {}],
  ] as const)('%s during the handshake is a %s failure', async (_name, reason, behaviour) => {
    const { port } = await listen(createTcpServer((socket) => void behaviour(socket)));
    expect(await post(`https://hooks.example.com:${port}/`, { timeoutMs: reason === 'timeout' ? 200 : 10_000 })).toMatchObject({
      reason,
    });
  });

  test('not one byte of TLS goes to a peer that was not vetted', async () => {
    let bytes = 0;
    const { port, connections } = await listen(createTcpServer((socket) => socket.on('data', (chunk) => (bytes += chunk.length))));
    const policy = URLPolicy({ allowPorts: [port], allowCidrs: ['0.0.0.0/32'] });
    expect(await post(`https://hooks.example.com:${port}/`, { policy, resolve: async () => ['0.0.0.0'] })).toMatchObject({
      reason: 'blocked_address',
    });
    await vi.waitFor(() => expect(connections()).toBe(1));
    expect(bytes).toBe(0);
  });
});

describe('the system’s resolver', () => {
  interface Zone {
    readonly a?: readonly string[];
    readonly aaaa?: readonly string[];
    readonly silent?: boolean;
    readonly rcode?: number;
  }

  /** A name server for one name: just enough DNS to answer A and AAAA queries. */
  async function nameServer(zone: Zone): Promise<Resolver> {
    const server = createSocket('udp4');
    server.on('message', (query, from) => {
      if (zone.silent === true) return;
      const end = query.indexOf(0, 12) + 5;
      const type = query.readUInt16BE(end - 4);
      const data =
        type === 1
          ? (zone.a ?? []).map((text) => Buffer.from(text.split('.').map(Number)))
          : (zone.aaaa ?? []).map((hex) => Buffer.from(hex, 'hex'));
      const header = Buffer.from(query.subarray(0, 12));
      header.writeUInt16BE(0x8180 | (zone.rcode ?? 0), 2);
      header.writeUInt16BE(data.length, 6);
      header.writeUInt32BE(0, 8);
      const answers = data.map((bytes) => Buffer.concat([Buffer.from([0xc0, 0x0c, 0, type, 0, 1, 0, 0, 0, 0, 0, bytes.length]), bytes]));
      server.send(Buffer.concat([header, query.subarray(12, end), ...answers]), from.port, from.address);
    });
    await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve));
    cleanups.push(() => server.close());
    const resolver = new Resolver({ timeout: zone.silent === true ? 100 : 5000, tries: 1 });
    resolver.setServers([`127.0.0.1:${server.address().port}`]);
    return resolver;
  }

  const resolveWith = async (zone: Zone): Promise<readonly string[]> =>
    systemResolver(URLPolicy(), await nameServer(zone))('hooks.example.com');

  test('gives the addresses of both families', async () => {
    expect(await resolveWith({ a: ['192.0.2.1', '192.0.2.2'], aaaa: [`20010db8${'0'.repeat(23)}1`] })).toEqual([
      '192.0.2.1',
      '192.0.2.2',
      '2001:db8::1',
    ]);
  });

  test('does without a family that has no records', async () => {
    expect(await resolveWith({ a: ['192.0.2.1'] })).toEqual(['192.0.2.1']);
    expect(await resolveWith({ aaaa: [`20010db8${'0'.repeat(23)}1`] })).toEqual(['2001:db8::1']);
  });

  test.each([
    ['an unknown name', { rcode: 3 }, 'ENOTFOUND'],
    ['a failing server', { rcode: 2 }, 'ESERVFAIL'],
    ['a silent server', { silent: true }, 'ETIMEOUT'],
    ['a name without addresses', {}, 'ENODATA'],
  ])('%s is an error', async (_name, zone, code) => {
    await expect(resolveWith(zone)).rejects.toMatchObject({ code });
  });

  test('a public name with a private address is blocked end to end', async () => {
    const { port, connections } = await listen(createTcpServer());
    const policy = URLPolicy({ allowPorts: [port] });
    const resolve = systemResolver(policy, await nameServer({ a: ['127.0.0.1'] }));
    expect(await post(`https://hooks.example.com:${port}/`, { policy, resolve })).toMatchObject({ reason: 'blocked_address' });
    expect(connections()).toBe(0);
  });

  test('local names, where the policy allows them, are looked up as the system does', async () => {
    expect(await systemResolver(URLPolicy({ allowPrivateNetworks: true }))('localhost')).toContain('127.0.0.1');
    expect(await systemResolver(URLPolicy({ allowHosts: ['localhost'] }))('localhost')).toContain('127.0.0.1');
  });
});
