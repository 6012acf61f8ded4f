import { Agent } from 'node:http';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { ask, eventually, SERVER_TOML, startServer } from '../test/running-server.ts';

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
  await expect(ask(healthPort, '/healthz')).rejects.toThrow('ECONNREFUSED');
});

test('stopping twice is stopping once', async () => {
  const running = await startServer();
  await Promise.all([running.server.stop(), running.server.stop()]);
  await running.server.stop();
});
