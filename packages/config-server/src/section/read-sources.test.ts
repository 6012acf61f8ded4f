import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import type { FileAccess } from '../file-access.ts';
import type { FileSource } from './definition.ts';
import { readSources } from './read-sources.ts';

async function sources(...names: string[]): Promise<FileSource[]> {
  const folder = await temporaryFolder();
  return names.map((name) => ({ listed: name, path: join(folder, name), optional: false }));
}

/** Real files, with something happening to them right after the first one was read. */
function interrupted(happen: () => void): FileAccess & { reads: number } {
  const access = {
    reads: 0,
    stat: (path: string) => statSync(path),
    read(path: string) {
      const content = readFileSync(path);
      if (++access.reads === 1) happen();
      return content;
    },
  };
  return access;
}

async function age(...files: FileSource[]): Promise<void> {
  for (const file of files) await utimes(file.path, 1_000_000_000, 1_000_000_000);
}

test('a file that is rewritten in place while it is read is read again', async () => {
  const [file] = (await sources('a.toml')) as [FileSource];
  writeFileSync(file.path, '');
  await age(file);
  const access = interrupted(() => writeFileSync(file.path, 'whole'));
  expect((await readSources([file], access)).get(file)!.toString()).toBe('whole');
});

test('two files that are swapped together are never read one old and one new', async () => {
  const [first, second] = (await sources('a.toml', 'b.toml')) as [FileSource, FileSource];
  for (const file of [first, second]) {
    writeFileSync(file.path, 'old');
    writeFileSync(`${file.path}.new`, 'new');
  }
  await age(first, second);
  const access = interrupted(() => {
    for (const file of [first, second]) renameSync(`${file.path}.new`, file.path);
  });
  const read = await readSources([first, second], access);
  expect([read.get(first)!.toString(), read.get(second)!.toString()]).toEqual(['new', 'new']);
});

test('a file that was written this moment is given time to be finished', async () => {
  const [file] = (await sources('a.toml')) as [FileSource];
  writeFileSync(file.path, '');
  const access = interrupted(() => undefined);
  const reading = readSources([file], access);
  setTimeout(() => writeFileSync(file.path, 'whole'), 5);
  expect((await reading).get(file)!.toString()).toBe('whole');
  expect(access.reads).toBeGreaterThan(1);
});

test('a file whose time lies in the future is read once', async () => {
  const [file] = (await sources('a.toml')) as [FileSource];
  writeFileSync(file.path, 'x');
  await utimes(file.path, 4_000_000_000, 4_000_000_000);
  const access = interrupted(() => undefined);
  await readSources([file], access);
  expect(access.reads).toBe(1);
});
