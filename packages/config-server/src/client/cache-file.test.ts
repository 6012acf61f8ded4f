import { chmod, chown, mkdir, readdir, readFile, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sendDocument, serveHttp, type Loopback } from '../../test/loopback-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { RemoteSource } from './index.ts';

const section = { application: 'billing', profile: 'production', token: 'canary-token-0123456789-0123456789-01' };
const down = { url: 'http://127.0.0.1:1', ...section };

const serveVersioned = (document: object): Promise<Loopback> =>
  serveHttp((request, response) => {
    const etag = `"${Buffer.from(JSON.stringify(document)).toString('hex').slice(0, 40)}"`;
    if (request.headers['if-none-match'] === etag) response.writeHead(304, { 'config-generation': '5' }).end();
    else sendDocument(response, document, { etag, 'config-generation': '5' });
  });

async function filledCache(document: object = { a: 1 }): Promise<{ folder: string; cacheFile: string; server: Loopback }> {
  const folder = await temporaryFolder();
  const cacheFile = join(folder, 'billing.cache');
  const server = await serveVersioned(document);
  expect(await new RemoteSource({ url: server.url, ...section, cacheFile }).refresh()).toEqual({ changed: true });
  return { folder, cacheFile, server };
}

test('a new source starts from the cache file while the server is down', async () => {
  const { cacheFile } = await filledCache({ pool: { size: 3 } });
  const source = new RemoteSource({ ...down, cacheFile });
  const result = await source.refresh();
  expect(result).toMatchObject({ changed: true, error: { kind: 'remote' } });
  expect(source.current).toEqual({ pool: { size: 3 } });
  expect(source.generation).toBe(5);
  expect(source.origin).toBe('cache');
});

test('the cached entity tag makes the first request conditional', async () => {
  const { cacheFile, server } = await filledCache();
  const source = new RemoteSource({ url: server.url, ...section, cacheFile });
  expect(await source.refresh()).toEqual({ changed: true });
  expect(server.requests.at(-1)?.headers['if-none-match']).toBeDefined();
  expect(source.current).toEqual({ a: 1 });
  expect(source.origin).toBe('server');
});

test('the cache file is for its owner only, holds no token, and no temporary stays behind', async () => {
  const { folder, cacheFile } = await filledCache();
  expect((await stat(cacheFile)).mode & 0o777).toBe(0o600);
  expect(await readdir(folder)).toEqual(['billing.cache']);
  expect(await readFile(cacheFile, 'utf8')).not.toContain('canary-token');
});

test('a reader sees whole versions only while the file is being replaced', async () => {
  const { cacheFile, server } = await filledCache();
  let version = 0;
  server.handle = (_, response) => sendDocument(response, { version: (version += 1), filler: 'x'.repeat(200_000) });
  const writer = new RemoteSource({ url: server.url, ...section, cacheFile });
  const written = new AbortController();
  const reads = (async () => {
    let count = 0;
    while (!written.signal.aborted) {
      const reader = new RemoteSource({ ...down, cacheFile });
      expect(await reader.refresh()).not.toHaveProperty('cacheError');
      expect(reader.current).toBeDefined();
      count += 1;
    }
    return count;
  })();
  for (let round = 0; round < 30; round += 1) expect(await writer.refresh()).toEqual({ changed: true });
  written.abort();
  expect(await reads).toBeGreaterThan(0);
});

test.each([
  ['torn', (content: string) => content.slice(0, -1)],
  ['altered', (content: string) => content.replace('"a":1', '"a":2')],
  ['empty', () => ''],
  ['something else', () => 'canary'],
  ['of another format', (content: string) => content.replace('"format":1', '"format":2')],
  ['of another application', (content: string) => content.replace('"billing"', '"orders"')],
  ['of another profile', (content: string) => content.replace('"production"', '"staging"')],
])('a cache file that is %s is not used, and is replaced by the next fetch', async (_, alter) => {
  const { cacheFile, server } = await filledCache();
  await writeFile(cacheFile, alter(await readFile(cacheFile, 'utf8')));
  const source = new RemoteSource({ ...down, cacheFile });
  const result = await source.refresh();
  expect(result).toMatchObject({ changed: false, error: { kind: 'remote' }, cacheError: { kind: 'cache', code: 'cache-read' } });
  expect(source.current).toBeUndefined();
  expect(result.cacheError?.message).not.toContain('canary');
  await new RemoteSource({ url: server.url, ...section, cacheFile }).refresh();
  const again = new RemoteSource({ ...down, cacheFile });
  expect(await again.refresh()).not.toHaveProperty('cacheError');
  expect(again.current).toEqual({ a: 1 });
});

test.each([0o622, 0o660, 0o606])('a cache file others can write (%o) is not trusted', async (mode) => {
  const { cacheFile } = await filledCache();
  await chmod(cacheFile, mode);
  const source = new RemoteSource({ ...down, cacheFile });
  expect((await source.refresh()).cacheError?.message).toContain('chmod 600');
  expect(source.current).toBeUndefined();
});

test.skipIf(process.getuid?.() !== 0)('a cache file that belongs to another user is not trusted', async () => {
  const { cacheFile } = await filledCache();
  await chown(cacheFile, 12_345, 12_345);
  const source = new RemoteSource({ ...down, cacheFile });
  expect(await source.refresh()).toMatchObject({ changed: false, cacheError: { code: 'cache-read' } });
  expect(source.current).toBeUndefined();
});

test('a missing cache file is not an error', async () => {
  const source = new RemoteSource({ ...down, cacheFile: join(await temporaryFolder(), 'none') });
  expect(await source.refresh()).not.toHaveProperty('cacheError');
});

test('a folder in the place of the cache file is reported and does not stop the document', async () => {
  const folder = await temporaryFolder();
  const cacheFile = join(folder, 'cache');
  await mkdir(cacheFile);
  const server = await serveVersioned({ a: 1 });
  const source = new RemoteSource({ url: server.url, ...section, cacheFile });
  const result = await source.refresh();
  expect(result).toMatchObject({ changed: true, cacheError: { kind: 'cache', code: 'cache-write' } });
  expect(result.error).toBeUndefined();
  expect(source.current).toEqual({ a: 1 });
  expect(await readdir(folder)).toEqual(['cache']);
});

test('a failed write is repeated by the next refresh, although the document did not change', async () => {
  const folder = await temporaryFolder();
  const cacheFile = join(folder, 'later', 'cache');
  const server = await serveVersioned({ a: 1 });
  const source = new RemoteSource({ url: server.url, ...section, cacheFile });
  expect((await source.refresh()).cacheError).toMatchObject({ code: 'cache-write' });
  await mkdir(join(folder, 'later'));
  expect(await source.refresh()).toEqual({ changed: false });
  const restarted = new RemoteSource({ ...down, cacheFile });
  await restarted.refresh();
  expect(restarted.current).toEqual({ a: 1 });
});

test('a symbolic link in the place of the cache file is replaced, not written through', async () => {
  const { folder, cacheFile, server } = await filledCache();
  const link = join(folder, 'link');
  const target = join(folder, 'target');
  await writeFile(target, 'untouched');
  await symlink(target, link);
  await new RemoteSource({ url: server.url, ...section, cacheFile: link }).refresh();
  expect(await readFile(target, 'utf8')).toBe('untouched');
  expect(await readFile(link, 'utf8')).toBe(await readFile(cacheFile, 'utf8'));
});

test('a temporary left by a killed process is removed, a fresh one is left alone', async () => {
  const { folder, cacheFile, server } = await filledCache();
  const abandoned = `${cacheFile}.0123456789abcdef.tmp`;
  const fresh = `${cacheFile}.fedcba9876543210.tmp`;
  await writeFile(abandoned, 'secret');
  await utimes(abandoned, 1, 1);
  await writeFile(fresh, 'secret');
  await new RemoteSource({ url: server.url, ...section, cacheFile }).refresh();
  expect((await readdir(folder)).sort()).toEqual(['billing.cache', 'billing.cache.fedcba9876543210.tmp']);
});
