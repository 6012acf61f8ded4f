import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../../../..');
const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');
const { stdout } = await promisify(execFile)(process.execPath, ['--conditions=source', join(import.meta.dirname, 'print-walks.ts')], {
  cwd: root,
  maxBuffer: 16 * 1024 * 1024,
});
const ran = JSON.parse(stdout) as Readonly<Record<string, readonly string[]>>;
/** By request: the paragraph that follows it. */
const walks = new Map(
  [...page.matchAll(/### `([A-Z]+ [^`]+)`, file by file\n\n([\s\S]*?)\n\n/g)].map(([, request = '', text = '']) => [request, text]),
);

/** `crud/write/steps.ts`; a name without a folder is beside the one before. */
function filesOf(text: string): string[] {
  const files: string[] = [];
  for (const [, name = ''] of text.matchAll(/`([\w./-]+\.ts)`/g))
    files.push(name.includes('/') ? name : join(dirname(files.at(-1) ?? ''), name));
  return files;
}

describe('the walks of ARCHITECTURE.md', () => {
  test('are those of the requests that are tried here', () => {
    expect([...walks.keys()].toSorted()).toEqual(Object.keys(ran).toSorted());
  });

  describe.each([...walks])('%s', (request, text) => {
    test('goes through at most twelve files, in order', () => {
      const numbers = [...text.matchAll(/(?:^|\s)(\d+)\. `/g)].map(([, number]) => Number(number));
      expect(numbers).toEqual(numbers.map((_, index) => index + 1));
      expect(numbers.length).toBeGreaterThan(5);
      expect(numbers.length).toBeLessThanOrEqual(12);
      expect(filesOf(text)).toHaveLength(numbers.length);
    });

    test('names only files that run in this request', () => {
      expect(filesOf(text).filter((file) => ran[request]?.includes(file) !== true)).toEqual([]);
    });
  });
});
