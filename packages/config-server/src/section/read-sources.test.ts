import { readFileSync, renameSync, statSync, utimesSync, writeFileSync } from 'node:fs';
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
  // The first look is in the millisecond of the first write, and the rest follows right after it; the second look is later.
  const clock = (): number => {
    const { mtimeMs } = statSync(file.path);
    if (access.reads > 1) return mtimeMs + 1000;
    writeFileSync(file.path, 'whole');
    return mtimeMs;
  };
  expect((await readSources([file], access, clock)).get(file)!.toString()).toBe('whole');
  expect(access.reads).toBe(2);
});

test('a file whose time lies in the future is read once', async () => {
  const [file] = (await sources('a.toml')) as [FileSource];
  writeFileSync(file.path, 'x');
  await utimes(file.path, 4_000_000_000, 4_000_000_000);
  const access = interrupted(() => undefined);
  await readSources([file], access);
  expect(access.reads).toBe(1);
});

/** Real files, with something happening to them before each reading. */
function beforeEachReading(happen: (reading: number) => void): FileAccess {
  let readings = 0;
  return {
    stat: (path) => statSync(path),
    read(path) {
      happen(++readings);
      return readFileSync(path);
    },
  };
}

test('a file that is rewritten in place all the time fails, and is never taken in parts', async () => {
  const [file] = (await sources('a.toml')) as [FileSource];
  writeFileSync(file.path, 'a = 1\n');
  const access = beforeEachReading((reading) => writeFileSync(file.path, reading % 2 === 0 ? '' : `a = ${'1'.repeat(reading)}\n`));
  await expect(readSources([file], access)).rejects.toThrow('keeps changing while it is read');
});

test('a file that is touched all the time is read', async () => {
  const [file] = (await sources('a.toml')) as [FileSource];
  writeFileSync(file.path, 'a = 1\n');
  const access = beforeEachReading((reading) => utimesSync(file.path, reading, reading));
  expect((await readSources([file], access)).get(file)!.toString()).toBe('a = 1\n');
});

test('a file that is replaced all the time is read: each of them is complete', async () => {
  const [file] = (await sources('a.toml')) as [FileSource];
  writeFileSync(file.path, 'a = 0\n');
  const access = beforeEachReading((reading) => {
    writeFileSync(`${file.path}.new`, `a = ${reading}\n`);
    renameSync(`${file.path}.new`, file.path);
  });
  expect((await readSources([file], access)).get(file)!.toString()).toMatch(/^a = \d+\n$/);
});

test('an empty file is waited for longer: its content may be about to be written', async () => {
  const [file] = (await sources('a.toml')) as [FileSource];
  writeFileSync(file.path, '');
  const access = beforeEachReading((reading) => {
    if (reading === 2) writeFileSync(file.path, 'a = 1\n');
  });
  // Older than a file with content has to be, and younger than an empty one has to be.
  const { mtimeMs } = statSync(file.path);
  expect((await readSources([file], access, () => mtimeMs + 50)).get(file)!.toString()).toBe('a = 1\n');
});

test('a file that stays empty is read as empty', async () => {
  const [file] = (await sources('a.toml')) as [FileSource];
  writeFileSync(file.path, '');
  expect(
    (
      await readSources(
        [file],
        beforeEachReading(() => undefined),
      )
    ).get(file),
  ).toHaveLength(0);
});
