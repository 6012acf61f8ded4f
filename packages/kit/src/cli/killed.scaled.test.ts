import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { scaled } from '../../../../test/provision/scale.ts';
import { describeDatabases } from 'kit/testing';
import { KitProgram, sourceOf } from '../../test/cli/kit-program.ts';
import { insertMany, list, model, openDatabase, reveal, t } from '../db/index.ts';
import { keyEntry, newKey } from '../db/sealing/key-list.ts';

const ROWS = 800;
const [first, second, search] = [keyEntry(newKey('k1')), keyEntry(newKey('k2')), keyEntry(newKey('s1'))];

const patients = model('patients', { id: t.uuidv7().pk(), note: t.text(80).encrypted({ search: 'equality' }) });

function config(url: string): string {
  return `import { createApp } from ${sourceOf('index.ts')};
import { createTable, migration, model, t } from ${sourceOf('db/index.ts')};
const patients = model('patients', { id: t.uuidv7().pk(), note: t.text(80).encrypted({ search: 'equality' }) });
export default createApp({
  database: ${JSON.stringify(url)},
  modules: [{ name: 'clinic', models: [patients], migrations: [migration('0001_initial', [createTable('patients', patients.columns)])] }],
  mount: {},
});
`;
}

describeDatabases('commands that are killed with SIGKILL', (database) => {
  let folder = '';
  let program: KitProgram;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kit-killed-'));
    // The new key is the first one: every value is due.
    program = new KitProgram(folder, { DATA_KEYS: `${second},${first}`, DATA_SEARCH_KEYS: search });
    await writeFile(join(folder, 'kit.config.ts'), config(database.url));
    expect(await program.run(['migrate'])).toMatchObject({ code: 0 });
    const old = await openDatabase(database.url, { dataKeys: { keys: first, searchKeys: search } });
    await insertMany(
      old,
      patients,
      Array.from({ length: ROWS }, (_, n) => ({ note: `note ${n}` })),
    );
    await old.close();
  });
  afterAll(async () => {
    await program.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('kit data-keys rotate goes on with what is left, and no value is lost', async () => {
    const { db } = database;
    const rotated = async () =>
      Number((await db.query<{ n: number | bigint }>(`select count(*) as n from patients where note like 'enc1.k2.%'`))[0]?.n);
    for (const share of [0.01, 0.3, 0.6].slice(-scaled(1, 3))) {
      const child = program.start(['data-keys', 'rotate', '--batch', '50']);
      const exited = once(child, 'exit');
      await expect.poll(rotated, { interval: 3, timeout: 120_000 }).toBeGreaterThanOrEqual(ROWS * share);
      child.kill('SIGKILL');
      await exited;
    }
    const before = await rotated();
    const { code, stdout, stderr } = await program.run(['data-keys', 'rotate']);
    expect([code, stdout]).toEqual([0, `patients: ${ROWS - before} rows rotated, 0 failed\n`]);
    expect(stderr).toContain(`patients: ${ROWS - before} to do\npatients: ${ROWS - before} done\n`);
    expect((await program.run(['data-keys', 'status'])).stdout).toMatch(new RegExp(`patients\\.note +k2 +${ROWS}\\n`));
    const read = await openDatabase(database.url, { dataKeys: { keys: second, searchKeys: search } });
    try {
      const notes = (await list(read, patients)).map((row) => reveal(read, patients, row, 'note'));
      expect(new Set(notes)).toEqual(new Set(Array.from({ length: ROWS }, (_, n) => `note ${n}`)));
      expect(await list(read, patients, { where: { note: 'note 7' } as never })).toHaveLength(1);
    } finally {
      await read.close();
    }
  }, 300_000);

  if (database.dialect === 'sqlite')
    test('kit backup create leaves no file that looks complete, and the next one is', async () => {
      const out = join(folder, 'backups');
      const files = async () => (await readdir(out).catch(() => [])).filter((name) => name !== '.' && name !== '..');
      const child = program.start(['backup', 'create', '--out', out]);
      const exited = once(child, 'exit');
      // As soon as there is a part of it, or it was faster.
      await expect.poll(async () => (await files()).length, { interval: 1, timeout: 120_000 }).toBeGreaterThan(0);
      child.kill('SIGKILL');
      await exited;
      expect(await program.run(['backup', 'create', '--out', out])).toMatchObject({ code: 0 });
      const complete = (await files()).filter((name) => !name.endsWith('.partial'));
      expect(complete.length).toBeGreaterThan(0);
      for (const name of complete) expect(await program.run(['backup', 'verify', join(out, name)])).toMatchObject({ code: 0 });
    }, 300_000);
});
