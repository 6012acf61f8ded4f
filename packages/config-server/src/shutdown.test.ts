import { once } from 'node:events';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Agent, type Server } from 'node:http';
import { connect } from 'node:net';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { createCertificate } from '../test/certificates.ts';
import { ask, eventually, FILES, SERVER_TOML, startServer, TOKEN, type RunningServer } from '../test/running-server.ts';
import { temporaryFolder } from '../test/temporary-folder.ts';
import { DEADLINES } from './http/sockets.ts';

/** A stop or a handshake that has to wait for one of these does not end. */
const NO_DEADLINES = { shutdownMs: 3_600_000, handshakeMs: 3_600_000 };

async function startTls(options: Parameters<typeof startServer>[0]): Promise<RunningServer> {
  const folder = await temporaryFolder();
  const { cert, key } = createCertificate({ name: 'localhost' });
  await writeFile(join(folder, 'server.pem'), cert);
  await writeFile(join(folder, 'server.key'), key, { mode: 0o400 });
  return startServer({ ...options, folder, toml: `${SERVER_TOML}\n[server.tls]\ncertificate = "server.pem"\nkey = "server.key"\n` });
}

test('stopping closes connections that peers would keep alive, idle ones and those of ended streams', async () => {
  const running = await startServer();
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  await running.ask('/billing/prod', { agent });
  const stream = running.ask('/billing/prod/stream', { agent });
  await eventually(() => running.server.streams.open === 1, 'an open stream');
  const { port } = running;
  await running.server.stop();
  expect((await stream).text).toContain('id: 1');
  await expect(ask(port, '/healthz')).rejects.toThrow('ECONNREFUSED');
});

test('a request in flight is finished, and readyz says 503 on a connection that is still open', async () => {
  const running = await startServer({ toml: SERVER_TOML.replace('[server]', '[server]\nhealth_bind = "127.0.0.1:0"') });
  const healthPort = running.server.healthAddress!.port;
  const socket = connect(running.port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString()));
  socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /readyz HTTP/1.1\r\nHost: x\r\n');
  await eventually(() => text.includes('"ok"'), 'the first answer');
  const stopped = running.server.stop();
  expect((await ask(healthPort, '/readyz', { token: null })).json()).toEqual({ ready: false });
  socket.write('\r\n');
  await stopped;
  await eventually(() => text.includes('{"ready":false}'), 'the second answer');
  expect(text).toContain('HTTP/1.1 503 Service Unavailable');
  expect(text.slice(text.indexOf('HTTP/1.1 503'))).toContain('\r\nConnection: close\r\n');
  await expect(ask(healthPort, '/healthz')).rejects.toThrow('ECONNREFUSED');
});

test.each(['plain', 'tls'])('a document that its peer reads slowly is sent to its end (%s)', async (kind) => {
  // More than the buffers of both sides hold.
  const bytes = 15 * 1024 * 1024;
  const options = { files: { ...FILES, 'billing.toml': `[billing]\nlong = "${'x'.repeat(bytes)}"\n` }, deadlines: NO_DEADLINES };
  const running = await (kind === 'tls' ? startTls(options) : startServer(options));
  const address = { port: running.port, host: '127.0.0.1' };
  const socket = kind === 'tls' ? connectTls({ ...address, rejectUnauthorized: false }) : connect(address);
  onTestFinished(() => void socket.destroy());
  socket.write(`GET /billing/prod HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`);
  await once(socket, 'readable');
  const stopped = running.server.stop();
  const received = Buffer.concat(await socket.toArray());
  expect(received.length - received.indexOf('\r\n\r\n')).toBe(bytes + '\r\n\r\n{"long":""}'.length);
  await stopped;
});

test('a stream asked for while the server stops is refused, so that the stop need not wait for it', async () => {
  const running = await startServer();
  const socket = connect(running.port, '127.0.0.1');
  const answer = socket.toArray();
  socket.write(`GET /billing/prod/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n`);
  await eventually(() => socket.bytesWritten > 0, 'half of a request');
  await running.ask('/healthz');
  const stopped = running.server.stop();
  socket.write('\r\n');
  await stopped;
  expect((await answer).join('')).toMatch(/^HTTP\/1\.1 503 [^]*Retry-After: 5/);
});

test('a request that does not end is cut off at the deadline, and a second stop waits for the same end', async () => {
  const running = await startServer({ deadlines: { shutdownMs: 100 } });
  const socket = connect(running.port, '127.0.0.1');
  socket.on('error', () => undefined);
  const closed = once(socket, 'close');
  socket.write('GET /healthz HTTP/1.1\r\n');
  await eventually(() => socket.bytesWritten > 0, 'half of a request');
  await running.ask('/healthz');
  const ended: string[] = [];
  const first = running.server.stop().then(() => ended.push('first'));
  await running.server.stop();
  expect(ended).toEqual(['first']);
  await first;
  await closed;
});

test.each(['plain', 'tls'])('a connection that never sent a byte does not hold the stop up (%s)', async (kind) => {
  const running = kind === 'tls' ? await startTls({ deadlines: NO_DEADLINES }) : await startServer({ deadlines: NO_DEADLINES });
  const silent = connect(running.port, '127.0.0.1');
  onTestFinished(() => void silent.destroy());
  silent.on('error', () => undefined);
  const greeted = kind === 'tls' ? connectTls({ port: running.port, host: '127.0.0.1', rejectUnauthorized: false }) : silent;
  onTestFinished(() => void greeted.destroy());
  greeted.on('error', () => undefined);
  await once(greeted, kind === 'tls' ? 'secureConnect' : 'connect');
  await running.server.stop();
});

test('a peer that asked for a tunnel and never closes does not hold the stop up', async () => {
  const running = await startServer();
  const socket = connect({ port: running.port, host: '127.0.0.1', allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined);
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString()));
  socket.write('CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n');
  await eventually(() => text.startsWith('HTTP/1.1 404 '), 'the answer');
  await running.server.stop();
});

test('a connection that cannot be accepted is told of once a minute and stops nothing', async () => {
  let time = Date.now();
  const running = await startServer({ clock: { now: () => time, after: () => () => undefined } });
  const channel = 'http.server.request.start';
  const found = Promise.withResolvers<Server>();
  const find = (message: unknown): void => found.resolve((message as { server: Server }).server);
  subscribe(channel, find);
  onTestFinished(() => void unsubscribe(channel, find));
  await running.ask('/healthz');
  const failure = Object.assign(new Error('accept'), { code: 'EMFILE' });
  for (let round = 0; round < 3; round++) (await found.promise).emit('error', failure);
  time += 60_000;
  (await found.promise).emit('error', failure);
  expect(running.log.filter((line) => line.includes('connections cannot be accepted (EMFILE)'))).toHaveLength(2);
  expect((await running.ask('/healthz')).status).toBe(200);
});

test('an idle connection is kept for 65 seconds, and closed when its time is over', async () => {
  const kept = await startServer();
  expect((await kept.ask('/healthz', { headers: { connection: 'keep-alive' } })).headers['keep-alive']).toBe('timeout=65');
  const running = await startServer({ deadlines: { keepAliveMs: 50 } });
  const socket = connect(running.port, '127.0.0.1');
  const closed = once(socket, 'close');
  socket.resume();
  socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  await closed;
});

test('stopping twice is stopping once', async () => {
  const running = await startServer();
  await Promise.all([running.server.stop(), running.server.stop()]);
  await running.server.stop();
});

test('the deadlines are those the reference promises', () => {
  expect(DEADLINES).toEqual({ headersMs: 15_000, handshakeMs: 10_000, keepAliveMs: 65_000, shutdownMs: 10_000 });
});
