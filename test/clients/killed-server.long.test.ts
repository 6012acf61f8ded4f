import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, connect as dial, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../provision/free-port.ts';
import { DatabaseSync } from 'node:sqlite';
import { type OrdersProcess, startOrders } from './orders-process.ts';
import { runScript } from './run-script.ts';

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

/** Kills the server so many times, and starts it again each time. */
async function killServer(times: number): Promise<number> {
  for (let killed = 0; killed < times; killed += 1) {
    await new Promise((resolve) => setTimeout(resolve, 250));
    await orders.kill();
    const { key } = orders;
    orders = { ...(await startOrders(join(folder, 'data'), port)), key };
  }
  return times;
}

test('an effect is not doubled when responses are lost and the server is killed on the way', { timeout: 3_600_000 }, async () => {
  const proxy = await cuttingProxy(port);
  const { port: through } = proxy.address() as AddressInfo;
  const { orders: own } = client({ baseUrl: `http://127.0.0.1:${through}`, retries: 10_000, headers: { connection: 'close' } });
  const [COUNT, KILLS] = [200, 25];
  const killing = killServer(KILLS);
  const made = await Promise.all(
    Array.from({ length: COUNT }, async (_, index) => {
      await new Promise((resolve) => setTimeout(resolve, index * 150));
      return own.create({ body: { item: `bench ${index}`, quantity: 1 } }) as Promise<{ id: string }>;
    }),
  );
  expect(await killing).toBe(KILLS);
  const stored: string[] = [];
  for await (const order of client().orders.all({ item__contains: 'bench' })) stored.push(order.id as string);
  expect(stored.toSorted()).toEqual(made.map(({ id }) => id).toSorted());
  proxy.close();
});

const FILES = 60;
/** Until a server that was killed has started again on a busy machine. */
const TRIES = 2_000;
const PYTHON = ['/usr/bin/python3', 'python3'].find((each) => spawnSync(each, ['-c', 'import httpx']).status === 0);
const content = (index: number): string => `%PDF-1.4 ${String(index).repeat(50_000)}`;
const digest = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The files that are complete on the server, as digests of what it hands out. */
async function completeFiles(prefix: string): Promise<string[]> {
  const database = new DatabaseSync(join(folder, 'data', 'orders.db'), { readOnly: true });
  const rows = database.prepare("select id from uploads where state = 'complete' and filename like ?").all(`${prefix}%`);
  database.close();
  const digests: string[] = [];
  for (const { id } of rows) {
    const { url } = await client().invoices.read({ id, url: true });
    digests.push(digest(await (await fetch(new URL(url as string, orders.url))).text()));
  }
  return digests.toSorted();
}

const uploads: Record<string, (url: string) => Promise<void>> = {
  async typescript(url) {
    const { invoices } = client({ baseUrl: url, retries: 10_000, headers: { connection: 'close' } });
    for (let index = 0; index < FILES; index += 1) {
      const file = new File([content(index)], `typescript-${index}.pdf`, { type: 'application/pdf' });
      for (let attempt = 1; ; attempt += 1) {
        try {
          await invoices.upload({ file });
          break;
        } catch (error) {
          // Creating an upload is not repeated by the client. What was created and got no file expires.
          if (attempt === TRIES) throw error;
          await new Promise((resolve) => setTimeout(resolve, 200));
        }
      }
    }
  },
  async python(url) {
    writeFileSync(
      join(folder, 'main.py'),
      `import os
import time
import api
client = api.Client(os.environ["URL"], api_key=os.environ["KEY"], retries=10_000, headers={"connection": "close"})
for index in range(${FILES}):
    data = ("%PDF-1.4 " + str(index) * 50_000).encode()
    for attempt in range(1, ${TRIES} + 1):
        try:
            client.invoices.upload(file=data, filename=f"python-{index}.pdf")
            break
        except (api.httpx.TransportError, api.Problem):
            if attempt == ${TRIES}:
                raise
            time.sleep(0.2)
print("done")
`,
    );
    const { stdout, stderr } = await runScript(PYTHON!, ['main.py'], folder, { URL: url, KEY: orders.key });
    expect([stdout.trim(), stderr]).toEqual(['done', '']);
  },
};

test.for(Object.keys(uploads))(
  '%s: each file is complete once, and whole, after lost responses and kills',
  { timeout: 3_600_000 },
  async (language, context) => {
    context.skip(
      language === 'python' && PYTHON === undefined && process.env['KIT_REQUIRE_PYTHON'] === undefined,
      'Python with httpx is not installed',
    );
    const proxy = await cuttingProxy(port);
    const { port: through } = proxy.address() as AddressInfo;
    const killing = killServer(12);
    await uploads[language]!(`http://127.0.0.1:${through}`);
    await killing;
    proxy.close();
    expect(await completeFiles(language)).toEqual(Array.from({ length: FILES }, (_, index) => digest(content(index))).toSorted());
  },
);
