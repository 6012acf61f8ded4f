import { execFile, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
import { editInEditor } from '../cli/edit-in-editor.ts';
import { readSnapshot, replaceFile } from './replace-file.ts';

const execute = promisify(execFile);
const USER = 65_534;
const GROUP = 54_321;

test('an interrupt is left to the editor while it runs, and ends the program afterwards', async () => {
  const before = process.listenerCount('SIGINT');
  expect(editInEditor('a.toml', 'a = 1\n', 'true', await temporaryFolder())).toBe('a = 1\n');
  expect(process.listenerCount('SIGINT')).toBe(before);
});

test('a byte order mark that the editor added is removed', async () => {
  expect(editInEditor('a.toml', 'a = 1\n', String.raw`sed -i '1s/^/\xef\xbb\xbf/'`, await temporaryFolder())).toBe('a = 1\n');
});

test('a lock that a killed process left behind is removed', async () => {
  const folder = await temporaryFolder();
  const path = join(folder, 'a.toml');
  writeFileSync(path, 'old');
  writeFileSync(join(folder, '.a.toml.lock'), '');
  utimesSync(join(folder, '.a.toml.lock'), new Date(0), new Date(0));
  replaceFile(readSnapshot(path), 'new');
  expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual(['new', ['a.toml']]);
});

test('of processes that replace a file at the same time, none undoes what another one wrote', { timeout: 120_000 }, async () => {
  const folder = await temporaryFolder();
  const path = join(folder, 'count');
  writeFileSync(path, '0');
  const script = `const { readSnapshot, replaceFile } = await import(${JSON.stringify(new URL('replace-file.ts', import.meta.url).href)});
    let written = 0;
    for (let round = 0; round < 100; round++) {
      const file = readSnapshot(${JSON.stringify(path)});
      try { replaceFile(file, String(Number(file.text) + 1)); written++; } catch (error) { if (error.name !== 'NotEditable') throw error; }
    }
    console.log(written);`;
  const results = await Promise.all([1, 2, 3].map(() => execute(process.execPath, ['--input-type=module', '-e', script])));
  expect(Number(readFileSync(path, 'utf8'))).toBe(results.reduce((sum, { stdout }) => sum + Number(stdout), 0));
  expect(readdirSync(folder)).toEqual(['count']);
});

// Only root can create files of others, and become another user.
test.runIf(process.getuid?.() === 0)(
  'the owner, the group and the mode of a file stay; where they cannot, nothing is written',
  async () => {
    const folder = await temporaryFolder();
    chmodSync(folder, 0o777);
    const path = join(folder, 'a.toml');
    const write = (uid: number, gid: number): void => {
      writeFileSync(path, 'old');
      chownSync(path, uid, gid);
      chmodSync(path, 0o640);
    };
    const owner = (): object => (({ uid, gid, mode }) => ({ uid, gid, mode: mode & 0o777 }))(statSync(path));
    /** The modules are loaded as root: others may not be able to read them. */
    const replaceAs = (uid: number, groups: readonly number[]): string => {
      const script = `const { readSnapshot, replaceFile } = await import(${JSON.stringify(new URL('replace-file.ts', import.meta.url).href)});
      const file = readSnapshot(${JSON.stringify(path)});
      process.setgroups(${JSON.stringify(groups)}); process.setgid(${uid}); process.setuid(${uid});
      try { replaceFile(file, 'new'); } catch (error) { console.log(error.message); }`;
      const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
      return stdout + stderr;
    };
    write(USER, GROUP);
    replaceFile(readSnapshot(path), 'new');
    expect(owner()).toEqual({ uid: USER, gid: GROUP, mode: 0o640 });

    write(USER, GROUP);
    expect(replaceAs(USER, [GROUP])).toBe('');
    expect(readFileSync(path, 'utf8')).toBe('new');
    expect(owner()).toEqual({ uid: USER, gid: GROUP, mode: 0o640 });

    for (const [uid, gid] of [
      [USER, GROUP],
      [0, USER],
    ] as const) {
      write(uid, gid);
      expect(replaceAs(USER, [])).toContain('the owner and group of the file cannot be kept');
      expect(readFileSync(path, 'utf8')).toBe('old');
      expect(owner()).toEqual({ uid, gid, mode: 0o640 });
    }
    expect(readdirSync(folder)).toEqual(['a.toml']);
  },
);
