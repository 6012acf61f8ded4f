import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDatabase } from './open-database.ts';

describe.skipIf(process.platform === 'win32')('files of SQLite', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kit-open-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8);

  test('a new file, its log and its new folders are for the user of the process alone', async () => {
    const file = join(folder, 'a', 'data', 'app.db');
    const db = await openDatabase(`sqlite:${file}`);
    await db.execute('create table t (a integer)');
    expect([await modeOf(join(folder, 'a')), await modeOf(join(folder, 'a', 'data'))]).toEqual(['700', '700']);
    for (const each of [file, `${file}-wal`, `${file}-shm`]) expect([each, await modeOf(each)]).toEqual([each, '600']);
    await db.close();
  });

  test('what exists keeps its mode', async () => {
    const shared = join(folder, 'shared');
    await mkdir(shared);
    await chmod(shared, 0o755);
    const file = join(shared, 'app.db');
    await writeFile(file, '');
    await chmod(file, 0o664);
    const db = await openDatabase(`sqlite:${file}`);
    await db.execute('create table t (a integer)');
    expect([await modeOf(shared), await modeOf(file)]).toEqual(['755', '664']);
    await db.close();
  });
});
