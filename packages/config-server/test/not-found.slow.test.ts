import { Agent } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startCli } from './cli-server.ts';
import { exchange, exchangeRaw, withoutDate } from './http-exchange.ts';
import { folderWith, serverToml, TOKENS } from './served-folder.ts';

const sections = [
  { application: 'billing', profile: 'production', files: ['billing.toml'] },
  { application: 'orders', profile: 'production', files: ['orders.toml'] },
  { application: 'ledger', profile: 'development', files: ['ledger.toml'] },
  { application: 'ledger', profile: 'production', files: ['ledger.toml'] },
];
const files = {
  'billing.toml': '[billing]\na = 1\n',
  'orders.toml': `[orders]\nlarge = "${'x'.repeat(200_000)}"\n`,
  'ledger.toml': `[ledger]\nlarge = "${'x'.repeat(200_000)}"\n`,
  'server.toml': serverToml(sections).replace('["billing"]', '["billing", "ledger/development"]'),
};

// All of these must look the same to the caller of billing.
const hidden = {
  ungranted: '/orders/production',
  'ungranted profile of a granted application': '/ledger/production',
  'unknown profile of an ungranted application': '/orders/nowhere',
  'unknown application': '/absent/production',
  'unknown profile': '/billing/nowhere',
  malformed: '/%2e%2e/production',
  undecodable: '/%ff%fe/production',
  'too long': `/${'a'.repeat(65)}/production`,
};

test('ungranted, unknown and malformed are answered with identical bytes, on every endpoint and method', async () => {
  const folder = await folderWith(files);
  const server = await startCli(join(folder, 'server.toml'));
  const raw = async (method: string, path: string): Promise<string> =>
    withoutDate(
      await exchangeRaw(
        server.port,
        `${method} ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${TOKENS.billing}\r\n\r\n`,
      ),
    );
  for (const method of ['GET', 'HEAD']) {
    const reference = await raw(method, '/no/such/path/at/all');
    expect(reference).toMatch(/^HTTP\/1\.1 404 /);
    for (const suffix of ['', '/paths', '/check', '/status', '/stream', '/explain/a.b', '/', '/explain', '/explain/']) {
      for (const [name, path] of Object.entries(hidden)) {
        expect({ name, suffix, answer: await raw(method, path + suffix) }).toEqual({ name, suffix, answer: reference });
      }
    }
    for (const path of ['/', '//', '/billing', '/billing/', '/billing/production/', '/billing//production', '/./billing/production']) {
      expect({ path, answer: await raw(method, path) }).toEqual({ path, answer: reference });
    }
  }
});

test('without a valid token nothing is learned: 401 with identical bytes whatever is named', async () => {
  const folder = await folderWith(files);
  const server = await startCli(join(folder, 'server.toml'));
  const answers = new Set<string>();
  for (const path of ['/billing/production', '/metrics', ...Object.values(hidden)]) {
    for (const header of ['', 'authorization: Bearer wrong\r\n', 'authorization: Basic eDp5\r\n', `authorization: ${TOKENS.billing}\r\n`]) {
      answers.add(withoutDate(await exchangeRaw(server.port, `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${header}\r\n`)));
    }
  }
  expect([...answers]).toHaveLength(1);
  expect([...answers][0]).toMatch(/^HTTP\/1\.1 401 /);
  expect([...answers][0]).toMatch(/www-authenticate: Bearer/i);
});

test('the time of a 404 does not tell which kind it was', { timeout: 120_000 }, async () => {
  const folder = await folderWith(files);
  const server = await startCli(join(folder, 'server.toml'), { logFile: join(folder, 'audit.log') });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const kinds = Object.entries(hidden).filter(([name]) => name !== 'too long');
  const times = new Map<string, number[]>(kinds.map(([name]) => [name, []]));
  // Interleaved, so that whatever else the machine does falls on all kinds alike; the first rounds warm up.
  for (let round = 0; round < 1_100; round += 1) {
    for (const [name, path] of kinds) {
      const start = process.hrtime.bigint();
      const { status } = await exchange(server.url, path, { token: TOKENS.billing, agent });
      const took = Number(process.hrtime.bigint() - start);
      expect(status).toBe(404);
      if (round >= 100) times.get(name)?.push(took);
    }
  }
  agent.destroy();
  const medians = [...times].map(([name, values]) => ({ name, median: values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0 }));
  const fastest = Math.min(...medians.map(({ median }) => median));
  const slowest = Math.max(...medians.map(({ median }) => median));
  // Reading a file, comparing tokens twice or serialising the hidden document would each cost more than half a round trip.
  expect(slowest / fastest).toBeLessThan(1.5);
});
