import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { diskStore } from './disk-store.ts';

const KEY = 'pending/ann/x/a.txt';
let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kit-disk-store-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function sendPart(store: ReturnType<typeof diskStore>, multipartId: string, number: number, bytes: Buffer): Promise<void> {
  const sha256 = createHash('sha256').update(bytes).digest('base64');
  await store.receivePart(Readable.from([bytes]), multipartId, number, { key: KEY, length: bytes.length, sha256, admit: async () => {} });
}

test('a disk that is full while parts are put together is storage_full, and the parts stay for the next attempt', async () => {
  const store = diskStore({ folder });
  const multipartId = await store.createMultipart(KEY);
  const bytes = Buffer.alloc(5000, 'a');
  await sendPart(store, multipartId, 1, bytes);
  // A limit for the size of files acts like a full disk: one write takes what fits, and the next one fails.
  const script = `
    import { diskStore } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, 'disk-store.ts')).href)};
    const [folder, key, id] = process.argv.slice(1);
    const store = diskStore({ folder });
    const done = store.completeMultipart(key, id, await store.listParts(key, id));
    console.log(await done.then(() => 'complete', ({ code }) => code));`;
  const limited = ['-c', 'ulimit -f 1 && exec "$@"', 'sh', process.execPath, '--conditions=source', '--input-type=module', '-e', script];
  const { stdout } = await promisify(execFile)('sh', [...limited, folder, KEY, multipartId]);
  expect(stdout.trim()).toBe('storage_full');
  expect(await store.head(KEY)).toBeNull();
  await store.completeMultipart(KEY, multipartId, await store.listParts(KEY, multipartId));
  expect(await buffer(await store.read(KEY))).toEqual(bytes);
});

test('a part that is sent again with other bytes takes the place of the one before, however often', async () => {
  const store = diskStore({ folder });
  const multipartId = await store.createMultipart(KEY);
  await sendPart(store, multipartId, 2, Buffer.from('end'));
  for (const text of ['aaaa', 'bbbb', 'cccc', 'aaaa', 'dd']) await sendPart(store, multipartId, 1, Buffer.from(text));
  expect(await readdir(join(folder, `${KEY}.parts-${multipartId}`))).toHaveLength(2);
  const parts = await store.listParts(KEY, multipartId);
  expect(parts.map(({ number, size }) => [number, size])).toEqual([
    [1, 2],
    [2, 3],
  ]);
  await store.completeMultipart(KEY, multipartId, parts);
  expect((await buffer(await store.read(KEY))).toString()).toBe('ddend');
});

test('of many that send the same part at once, each as another one, one stays', async () => {
  const store = diskStore({ folder });
  const multipartId = await store.createMultipart(KEY);
  await Promise.all(Array.from({ length: 20 }, (_, index) => sendPart(store, multipartId, 1, Buffer.from(`part ${index}`))));
  expect(await store.listParts(KEY, multipartId)).toHaveLength(1);
  expect(await readdir(join(folder, `${KEY}.parts-${multipartId}`))).toHaveLength(1);
});

test('a folder that could not be made is made as soon as it can be', async () => {
  const place = join(folder, 'disk');
  await writeFile(place, 'not mounted yet');
  const store = diskStore({ folder: join(place, 'uploads') });
  await expect(store.createMultipart(KEY)).rejects.toMatchObject({ code: 'store_unavailable' });
  await rm(place);
  expect(await store.createMultipart(KEY)).toMatch(/^[0-9a-f]{32}$/);
});

test('parts that a killed process has left beside the file go with the file', async () => {
  const store = diskStore({ folder });
  const multipartId = await store.createMultipart(KEY);
  await sendPart(store, multipartId, 1, Buffer.from('a'));
  await store.completeMultipart(KEY, multipartId, await store.listParts(KEY, multipartId));
  // Killed before the last step of completeMultipart.
  await mkdir(join(folder, `${KEY}.parts-${multipartId}`));
  await writeFile(join(folder, `${KEY}.parts-${multipartId}`, `00001-1-${'0'.repeat(64)}`), 'a');
  await store.remove(KEY);
  expect(await readdir(join(folder, 'pending/ann'))).toEqual([]);
});
