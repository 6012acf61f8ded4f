import { writeFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startCli, type CliServer } from './cli-server.ts';
import { exchange } from './http-exchange.ts';
import { openDescriptors, residentBytes } from './process-vitals.ts';
import { folderWith, serverToml, TOKENS } from './served-folder.ts';

/** Counted in rounds and not in seconds: a busy machine takes longer and still does all of them. */
const ROUNDS = 1_500;
/** Shared by forty visitors, in four waves. */
const STREAMS = 100_000;
const MIB = 1024 * 1024;

const sections = [{ application: 'billing', profile: 'production', files: ['billing.toml'] }];

async function start(): Promise<{ server: CliServer; folder: string }> {
  const folder = await folderWith({
    'billing.toml': `[billing]\nround = 0\nfiller = "${'x'.repeat(20_000)}"\n`,
    'server.toml': serverToml(sections, 'watch_debounce_ms = 5'),
  });
  // A collected, small heap makes a leak visible early.
  const nodeArgs = ['--max-semi-space-size=2', '--max-old-space-size=192'];
  return { folder, server: await startCli(join(folder, 'server.toml'), { nodeArgs, logFile: join(folder, 'audit.log') }) };
}

/** Opens a stream, reads its first event, and goes away: politely, or with a reset. */
function visitStream(port: number, reset: boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(`GET /billing/production/stream HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKENS.billing}\r\n\r\n`);
    });
    let text = '';
    socket.on('error', reject);
    socket.on('close', () => resolve());
    socket.on('data', (chunk) => {
      text += chunk.toString();
      if (!text.includes('event: generation')) return;
      if (reset) socket.resetAndDestroy();
      else socket.destroy();
    });
  });
}

test('descriptors and memory are flat under reads, streams, reloads and failures', { timeout: 300_000 + ROUNDS * 2_000 }, async () => {
  const { server, folder } = await start();
  const agent = new Agent({ keepAlive: true });
  const samples: { descriptors: number; bytes: number }[] = [];
  const paths = ['', '/paths', '/check', '/status', '/explain/round', '/nowhere'];
  for (let round = 1; round <= ROUNDS; round += 1) {
    const content = round % 5 === 0 ? '[billing' : `[billing]\nround = ${round}\nfiller = "${'x'.repeat(20_000)}"\n`;
    await writeFile(join(folder, 'billing.toml'), content);
    const reads = Array.from({ length: 40 }, (_, index) => {
      const headers = index % 2 === 0 ? { 'accept-encoding': index % 4 === 0 ? 'gzip' : 'br' } : {};
      return exchange(server.url, `/billing/production${paths[index % paths.length]}`, { token: TOKENS.billing, agent, headers });
    });
    const streams = Array.from({ length: 10 }, (_, index) => visitStream(server.port, index % 2 === 0));
    await Promise.all([...reads, ...streams, exchange(server.url, '/metrics', { token: TOKENS.nothing, agent })]);
    samples.push({ descriptors: openDescriptors(server.pid), bytes: residentBytes(server.pid) });
  }
  agent.destroy();
  const third = Math.floor(samples.length / 3);
  const peak = (part: typeof samples, of: (sample: (typeof samples)[number]) => number): number => Math.max(...part.map(of));
  const [early, late] = [samples.slice(third, 2 * third), samples.slice(2 * third)];
  expect(peak(late, ({ descriptors }) => descriptors)).toBeLessThanOrEqual(peak(early, ({ descriptors }) => descriptors) + 10);
  expect(peak(late, ({ bytes }) => bytes)).toBeLessThan(peak(early, ({ bytes }) => bytes) * 1.1 + 24 * MIB);
});

test(`${STREAMS} streams opened and left do not leak`, { timeout: 300_000 + STREAMS * 20 }, async () => {
  const { server } = await start();
  const descriptors = openDescriptors(server.pid);
  let visited = 0;
  const visitor = async (share: number): Promise<void> => {
    for (let count = 0; count < share; count += 1) {
      await visitStream(server.port, count % 2 === 0);
      visited += 1;
    }
  };
  const wave = (total: number): Promise<unknown> => Promise.all(Array.from({ length: 40 }, () => visitor(total / 40)));
  await wave(STREAMS / 4);
  const bytes = residentBytes(server.pid);
  await wave((STREAMS * 3) / 4);
  expect(visited).toBe(STREAMS);
  await expect.poll(() => openDescriptors(server.pid), { timeout: 60_000 }).toBeLessThanOrEqual(descriptors + 2);
  expect(residentBytes(server.pid)).toBeLessThan(bytes * 1.15 + 16 * MIB);
  // The ceiling counts open streams only: after all that, a new one is admitted.
  await visitStream(server.port, false);
});

test('streams that end are given back to the ceiling', async () => {
  const folder = await folderWith({
    'billing.toml': '[billing]\na = 1\n',
    'server.toml': serverToml(sections, 'max_stream_connections = 3'),
  });
  const server = await startCli(join(folder, 'server.toml'));
  const open = (): Promise<Socket> =>
    new Promise((resolve) => {
      const socket = connect(server.port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.once('data', () => resolve(socket));
      socket.write(`GET /billing/production/stream HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKENS.billing}\r\n\r\n`);
    });
  for (let round = 0; round < 50; round += 1) {
    const sockets = await Promise.all([open(), open(), open()]);
    const refused = await exchange(server.url, '/billing/production/stream', { token: TOKENS.billing });
    expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    for (const socket of sockets) socket.destroy();
    await expect
      .poll(async () => (await exchange(server.url, '/billing/production/stream', { token: TOKENS.billing, method: 'HEAD' })).status, {
        interval: 5,
        timeout: 60_000,
      })
      .toBe(200);
  }
});
