import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, connect as dial, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../provision/free-port.ts';
import { type OrdersProcess, startOrders } from './orders-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'kit-client-kills-'));
const FIVE_MINUTES = 300_000;

// oxlint-disable-next-line typescript/no-explicit-any -- the generated client is not known to the compiler
type Generated = any;
let api: Generated;
let orders: OrdersProcess;
let port: number;

beforeAll(async () => {
  port = await freePort();
  orders = await startOrders(join(folder, 'data'), port, folder);
  api = await import(join(folder, 'api.ts'));
}, FIVE_MINUTES);
afterAll(async () => {
  await orders?.kill();
  rmSync(folder, { recursive: true, force: true });
});

const client = (options: object = {}): Generated => api.createClient({ baseUrl: orders.url, apiKey: orders.key, ...options });

/** Passes bytes on, and cuts every second connection as soon as the server answers: the request was done, the caller does not know. */
function cuttingProxy(target: number): Promise<Server> {
  let count = 0;
  const server = createServer((incoming: Socket) => {
    count += 1;
    const isCut = count % 2 === 1;
    const outgoing = dial(target, '127.0.0.1');
    for (const socket of [incoming, outgoing]) socket.on('error', () => undefined);
    incoming.on('data', (chunk) => outgoing.write(chunk));
    outgoing.on('data', (chunk) => (isCut ? incoming.destroy() : incoming.write(chunk)));
    outgoing.on('close', () => incoming.destroy());
    incoming.on('close', () => outgoing.destroy());
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

test('an effect is not doubled when responses are lost and the server is killed on the way', { timeout: 3_600_000 }, async () => {
  const proxy = await cuttingProxy(port);
  const { port: through } = proxy.address() as AddressInfo;
  const { orders: own } = client({ baseUrl: `http://127.0.0.1:${through}`, retries: 10_000, headers: { connection: 'close' } });
  const [COUNT, KILLS] = [200, 25];
  let killed = 0;
  const killing = (async () => {
    while (killed < KILLS) {
      await new Promise((resolve) => setTimeout(resolve, 250));
      await orders.kill();
      killed += 1;
      const { key } = orders;
      orders = { ...(await startOrders(join(folder, 'data'), port)), key };
    }
  })();
  const made = await Promise.all(
    Array.from({ length: COUNT }, async (_, index) => {
      await new Promise((resolve) => setTimeout(resolve, index * 150));
      return own.create({ body: { item: `bench ${index}`, quantity: 1 } }) as Promise<{ id: string }>;
    }),
  );
  await killing;
  const stored: string[] = [];
  for await (const order of client().orders.all({ item__contains: 'bench' })) stored.push(order.id as string);
  expect(killed).toBe(KILLS);
  expect(stored.toSorted()).toEqual(made.map(({ id }) => id).toSorted());
  proxy.close();
});
