import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { OriginPools } from './origin-pools.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** A receiver of its own, so an origin of its own. */
async function origin(answerAfter: Promise<void> = Promise.resolve()): Promise<{ url: string; connections: () => number; server: Server }> {
  let connections = 0;
  const server = createServer((_request, response) => void answerAfter.then(() => response.end()));
  server.on('connection', (socket) => {
    connections += 1;
    socket.on('close', () => (connections -= 1));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers.push(server);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => connections, server };
}

function request(pools: OriginPools, url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let status = 0;
    const connection = pools.hold(url);
    connection.dispatch(
      { path: '/', method: 'POST', body: 'x' },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, code) => void (status = code),
        onResponseData: () => undefined,
        onResponseEnd: () => {
          connection.release('answered');
          resolve(status);
        },
        onResponseError: (_controller, error) => {
          connection.release('failed');
          reject(error);
        },
      },
    );
  });
}

test('a connection is kept for the next request, and no more origins are kept than the limit', async () => {
  const pools = new OriginPools({ originsMax: 2 });
  const [first, second, third] = [await origin(), await origin(), await origin()];
  for (const { url } of [first, second, first, third]) expect(await request(pools, url)).toBe(200);
  expect(pools.size).toBe(2);
  await expect.poll(second.connections).toBe(0);
  expect([first.connections(), third.connections()]).toEqual([1, 1]);
  expect(await request(pools, second.url), 'an origin that was closed is opened again').toBe(200);
  await pools.close();
});

test('an origin in use is not closed, even beyond the limit', async () => {
  const pools = new OriginPools({ originsMax: 1 });
  const { promise, resolve } = Promise.withResolvers<void>();
  const [slow, other] = [await origin(promise), await origin()];
  const answered = request(pools, slow.url);
  expect(await request(pools, other.url)).toBe(200);
  expect(pools.size).toBe(2);
  resolve();
  expect(await answered).toBe(200);
  await pools.close();
});

test('an origin whose last connection is gone, or that never accepted one, is forgotten', async () => {
  const pools = new OriginPools();
  const [receiver, gone] = [await origin(), await origin()];
  expect(await request(pools, receiver.url)).toBe(200);
  receiver.server.closeAllConnections();
  await expect.poll(() => pools.size).toBe(0);
  await new Promise((resolve) => gone.server.close(resolve));
  await expect(request(pools, gone.url)).rejects.toThrow(/ECONNREFUSED/);
  await expect.poll(() => pools.size).toBe(0);
  await pools.close();
});
