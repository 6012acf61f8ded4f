import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type WrittenEntry, zip, type ZipEntry } from './zip.ts';

async function* content(...pieces: string[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield await Promise.resolve(Buffer.from(piece));
}

async function* entries(): AsyncGenerator<ZipEntry> {
  yield { name: 'orders.jsonl', content: content('{"id":1}\n', '{"id":2}\n') };
  yield await Promise.resolve({ name: 'files/Straße.txt', content: content('x'.repeat(100_000)) });
  yield { name: 'empty.jsonl', content: content() };
}

test.each([
  ['small', undefined],
  ['with sizes of ZIP64', 100],
  ['with everything of ZIP64', 0],
])('another program reads the archive: names, contents and sums (%s)', async (_form, full) => {
  const written: WrittenEntry[] = [];
  const pieces: Uint8Array[] = [];
  for await (const piece of zip(entries(), (entry) => void written.push(entry), full)) pieces.push(piece);
  expect(written.map(({ name, bytes }) => [name, bytes])).toEqual([
    ['orders.jsonl', 18],
    ['files/Straße.txt', 100_000],
    ['empty.jsonl', 0],
  ]);
  // What is small has the older form, which every program reads.
  expect(Buffer.concat(pieces).includes(Buffer.from([0x50, 0x4b, 0x06, 0x06]))).toBe(full !== undefined);
  expect(written[0]?.sha256).toMatch(/^[0-9a-f]{64}$/);
  const folder = mkdtempSync(join(tmpdir(), 'kit-zip-'));
  try {
    writeFileSync(join(folder, 'a.zip'), Buffer.concat(pieces));
    // It tests the sums of every entry, and writes them.
    execFileSync('python3', [
      '-c',
      'import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; z.extractall(sys.argv[2])',
      join(folder, 'a.zip'),
      folder,
    ]);
    expect(readFileSync(join(folder, 'orders.jsonl'), 'utf8')).toBe('{"id":1}\n{"id":2}\n');
    expect(readFileSync(join(folder, 'files/Straße.txt'), 'utf8')).toHaveLength(100_000);
    expect(readFileSync(join(folder, 'empty.jsonl'), 'utf8')).toBe('');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
