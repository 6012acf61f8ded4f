import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { FileWatcher } from './file-watcher.ts';

interface Watched {
  readonly watcher: FileWatcher;
  readonly changed: string[];
}

function watching(...paths: string[]): Watched {
  const changed: string[] = [];
  const watcher = new FileWatcher({ onChange: (path) => changed.push(path), onProblem: () => undefined });
  onTestFinished(() => watcher.close());
  watcher.watch(paths);
  return { watcher, changed };
}

/** Everything that was reported until now does not count: what happened before the call is over. */
async function settle(changed: string[]): Promise<void> {
  let before = -1;
  while (before !== changed.length) {
    before = changed.length;
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  changed.length = 0;
}

/** What can happen to the directories above a watched file and to a link on the way to it. */
function accidents(folder: string): Record<string, () => void> {
  const [real, spare, link] = [join(folder, 'real'), join(folder, 'spare'), join(folder, 'link')];
  const relink = (to: string): void => {
    symlinkSync(to, `${link}.new`);
    renameSync(`${link}.new`, link);
  };
  return {
    'the directories are swapped': () => {
      renameSync(real, join(folder, 'aside'));
      renameSync(spare, real);
      renameSync(join(folder, 'aside'), spare);
    },
    'the directory is made again': () => {
      rmSync(real, { recursive: true });
      mkdirSync(join(real, 'deep'), { recursive: true });
    },
    'the directory is gone': () => rmSync(join(real, 'deep'), { recursive: true, force: true }),
    'the link leads to the other directory': () => relink('spare'),
    'the link leads back': () => relink('real'),
    'the link leads nowhere': () => relink('missing'),
    'the link is gone': () => rmSync(link, { force: true }),
  };
}

test('after anything that happens to the directories of a file, its next write is reported', async () => {
  const folder = await temporaryFolder();
  for (const name of ['real', 'spare']) mkdirSync(join(folder, name, 'deep'), { recursive: true });
  symlinkSync('real', join(folder, 'link'));
  const file = join(folder, 'link', 'deep', 'app.toml');
  const { changed } = watching(file, join(folder, 'other.toml'));
  const events = accidents(folder);
  for (const name of [...Object.keys(events), ...Object.keys(events).reverse()]) {
    events[name]!();
    await settle(changed);
    for (const directory of ['real', 'spare', 'missing']) mkdirSync(join(folder, directory, 'deep'), { recursive: true });
    if (!existsSync(join(folder, 'link'))) events['the link leads back']!();
    await settle(changed);
    writeFileSync(file, name);
    await vi.waitFor(() => expect({ after: name, reported: changed }).toMatchObject({ reported: expect.arrayContaining([file]) }), {
      timeout: 10_000,
    });
    rmSync(join(folder, 'missing'), { recursive: true });
    await settle(changed);
  }
  expect(changed).not.toContain(join(folder, 'other.toml'));
}, 120_000);

test('every file below a directory is reported when the directory is replaced, and a file beside it is not', async () => {
  const folder = await temporaryFolder();
  const files = ['a.toml', 'b.toml', 'deep/c.toml'].map((name) => join(folder, 'apps', name));
  for (const file of [...files, join(folder, 'next/deep/c.toml')]) mkdirSync(dirname(file), { recursive: true });
  const { changed } = watching(...files, join(folder, 'server.toml'));
  renameSync(join(folder, 'apps'), join(folder, 'old'));
  renameSync(join(folder, 'next'), join(folder, 'apps'));
  await vi.waitFor(() => expect(new Set(changed)).toEqual(new Set(files)), { timeout: 10_000 });
});

test('a path that is no longer watched is not reported, and one that shares its directories is', async () => {
  const folder = await temporaryFolder();
  const [kept, dropped] = [join(folder, 'apps/kept.toml'), join(folder, 'apps/dropped.toml')];
  mkdirSync(join(folder, 'apps'));
  const { watcher, changed } = watching(kept, dropped);
  watcher.watch([kept]);
  writeFileSync(dropped, '');
  writeFileSync(kept, '');
  await vi.waitFor(() => expect(changed).toContain(kept), { timeout: 10_000 });
  expect(changed).not.toContain(dropped);
});

test('a directory with all its names reports each of them, and those of the directory that replaces it', async () => {
  const folder = await temporaryFolder();
  const [all, next] = [join(folder, 'identities/'), join(folder, 'next')];
  for (const directory of [all, next]) mkdirSync(directory);
  const { changed } = watching(all);
  writeFileSync(join(all, 'one'), '');
  await vi.waitFor(() => expect(changed).toEqual(expect.arrayContaining([all])), { timeout: 10_000 });
  rmSync(all, { recursive: true });
  renameSync(next, join(folder, 'identities'));
  await settle(changed);
  writeFileSync(join(all, 'two'), '');
  await vi.waitFor(() => expect(changed).toEqual(expect.arrayContaining([all])), { timeout: 10_000 });
});
