import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { FileWatcher } from './file-watcher.ts';
import { placeOf } from './path-trail.ts';

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

test('a directory is watched before names in it are looked up, so one that appears in between is not missed', async () => {
  const folder = await temporaryFolder();
  const watched: string[] = [];
  const above = { steps: [], directory: folder, links: 0 };
  const appearing = placeOf(join(folder, 'apps'), above, (directory) => {
    watched.push(directory);
    mkdirSync(join(folder, 'apps'));
  });
  expect([appearing.directory, watched]).toEqual([join(folder, 'apps'), [folder]]);
  symlinkSync('old', join(folder, 'link'));
  const swapped = placeOf(join(folder, 'link'), above, () => {
    rmSync(join(folder, 'link'), { force: true });
    symlinkSync('apps', join(folder, 'link'));
  });
  expect(swapped.directory).toBe(join(folder, 'apps'));
});

/** How many events Linux keeps for a process that does not read them; a test would take long to exceed a large setting. */
const queued = process.platform === 'linux' ? Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8')) : Infinity;

test.skipIf(queued > 100_000)('changes whose events the kernel drops, because too many are waiting, are reported', async () => {
  const folder = await temporaryFolder();
  const [file, late] = [join(folder, 'app.toml'), join(folder, 'late/app.toml')];
  const noise = ['one', 'two'].map((name) => join(folder, name));
  for (const path of [file, ...noise]) writeFileSync(path, '');
  const { changed } = watching(file, late);
  await settle(changed);
  // Two events of one kind for one name are merged, so the names alternate. No event is read meanwhile: this does not wait.
  for (let count = 0; count <= queued; count++) utimesSync(noise[count % 2]!, 1, count);
  writeFileSync(file, 'changed');
  mkdirSync(dirname(late));
  await vi.waitFor(() => expect(new Set(changed)).toEqual(new Set([file, late])), { timeout: 10_000 });
  await settle(changed);
  writeFileSync(late, 'changed');
  await vi.waitFor(() => expect(changed).toContain(late), { timeout: 10_000 });
});

test('a directory that cannot be watched is reported when a file is in it, also after a path below it', async ({ skip }) => {
  const folder = await temporaryFolder();
  const apps = join(folder, 'apps');
  mkdirSync(join(apps, 'deep'), { recursive: true });
  chmodSync(folder, 0o755);
  chmodSync(apps, 0o311);
  onTestFinished(() => chmodSync(apps, 0o755));
  asOrdinaryUser(() => skip(!existsSync(folder), 'an ordinary user cannot reach the temporary folder'));
  const problems: string[] = [];
  const watcher = new FileWatcher({ onChange: () => undefined, onProblem: (directory, code) => problems.push(`${directory} ${code}`) });
  onTestFinished(() => watcher.close());
  asOrdinaryUser(() => watcher.watch([join(apps, 'deep/a.toml'), join(apps, 'b.toml'), join(apps, 'c.toml')]));
  expect(problems).toEqual([`${apps} EACCES`]);
});

/** The superuser may read every directory. */
function asOrdinaryUser(run: () => void): void {
  const isSuperuser = process.getuid?.() === 0;
  if (isSuperuser) process.seteuid?.(65_534);
  try {
    run();
  } finally {
    if (isSuperuser) process.seteuid?.(0);
  }
}
