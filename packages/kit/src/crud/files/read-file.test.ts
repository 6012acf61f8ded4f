import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { INPUT_LIMITS } from '../../options/input-limits.ts';
import { type FileRow, readFile } from './read-file.ts';

async function rowsOf(text: string): Promise<FileRow[]> {
  const { rows } = await readFile(Readable.from([Buffer.from(text)]), 'jsonl', INPUT_LIMITS);
  const found: FileRow[] = [];
  for await (const batch of rows) found.push(...batch);
  return found;
}

test('lines are read as they are asked for, however many arrive together', async () => {
  // Reading all of them would take half a minute: each is an error with its place.
  const { rows } = await readFile(Readable.from([Buffer.from('{\n'.repeat(1_000_000))]), 'jsonl', INPUT_LIMITS);
  let count = 0;
  for await (const batch of rows) {
    expect(batch.length).toBeLessThanOrEqual(100);
    count += batch.length;
    if (count >= 200) break;
  }
  expect(count).toBe(200);
});

test('lines keep their numbers in every batch, and empty ones count', async () => {
  const lines = Array.from({ length: 250 }, (_, index) => (index % 10 === 0 ? '' : `{"n":${index + 1}}`));
  const found = (await rowsOf(lines.join('\n'))).map((row) => [row.number, 'values' in row ? row.values['n'] : undefined]);
  expect(found).toEqual(lines.flatMap((line, index) => (line === '' ? [] : [[index + 1, index + 1]])));
});
