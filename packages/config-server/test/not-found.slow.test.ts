import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startCli } from './cli-server.ts';
import { HIDDEN, HIDING_FILES } from './hidden-sections.ts';
import { exchangeRaw, withoutDate } from './http-exchange.ts';
import { folderWith, TOKENS } from './served-folder.ts';

test('ungranted, unknown and malformed are answered with identical bytes, on every endpoint and method', async () => {
  const folder = await folderWith(HIDING_FILES);
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
      for (const [name, path] of Object.entries(HIDDEN)) {
        expect({ name, suffix, answer: await raw(method, path + suffix) }).toEqual({ name, suffix, answer: reference });
      }
    }
    for (const path of ['/', '//', '/billing', '/billing/', '/billing/production/', '/billing//production', '/./billing/production']) {
      expect({ path, answer: await raw(method, path) }).toEqual({ path, answer: reference });
    }
  }
});

test('without a valid token nothing is revealed: 401 with identical bytes whatever is named', async () => {
  const folder = await folderWith(HIDING_FILES);
  const server = await startCli(join(folder, 'server.toml'));
  const answers = new Set<string>();
  for (const path of ['/billing/production', '/metrics', ...Object.values(HIDDEN)]) {
    for (const header of ['', 'authorization: Bearer wrong\r\n', 'authorization: Basic eDp5\r\n', `authorization: ${TOKENS.billing}\r\n`]) {
      answers.add(withoutDate(await exchangeRaw(server.port, `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${header}\r\n`)));
    }
  }
  expect([...answers]).toHaveLength(1);
  expect([...answers][0]).toMatch(/^HTTP\/1\.1 401 /);
  expect([...answers][0]).toMatch(/www-authenticate: Bearer/i);
});
