import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeDatabases } from 'kit/testing';
import { KitProgram, sourceOf } from '../../test/cli/kit-program.ts';
import { unzip } from '../../test/personal/unzip.ts';

function config(url: string): string {
  return `import { createApp, isAuthenticated } from ${sourceOf('index.ts')};
import { accounts, users } from ${sourceOf('contrib/accounts/index.ts')};
import { audit } from ${sourceOf('contrib/audit/index.ts')};
import { personalData } from ${sourceOf('contrib/personal/index.ts')};
import { tenants } from ${sourceOf('contrib/tenants/index.ts')};
import { createTable, migration, model, t } from ${sourceOf('db/index.ts')};
const notes = model(
  'notes',
  { id: t.int().pk(), owner_id: t.ref(() => users).nullable().person(), tenant_id: t.uuid().nullable().tenant(), text: t.text().personal(), at: t.timestamp() },
  { retention: { after: '30 days', by: 'at', then: 'delete' } },
);
const prints = model('prints', { id: t.int().pk(), at: t.timestamp() }, { retention: { after: '30 days', by: 'at', then: 'delete' } });
const copies = model('copies', { id: t.int().pk(), print_id: t.ref(() => prints) });
export default createApp({
  database: ${JSON.stringify(url)},
  modules: [accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }), audit(), tenants({ create: isAuthenticated }), personalData(), {
    name: 'shop',
    requires: ['accounts'],
    models: [prints, copies, notes],
    migrations: [migration('0001_initial', [createTable('notes', { ...notes.columns, owner_id: t.ref('users').nullable() }), createTable('prints', prints.columns), createTable('copies', { id: t.int().pk(), print_id: t.ref('prints', { type: t.int() }) })])],
  }],
  mount: {},
});
`;
}

describeDatabases('commands about personal data', (database) => {
  let folder = '';
  let program: KitProgram;
  let number = 0;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kit-personal-'));
    program = new KitProgram(folder);
    await writeFile(join(folder, 'kit.config.ts'), config(database.url));
    expect(await kit('migrate')).toMatchObject({ code: 0 });
    for (const name of ['ada', 'bob'])
      expect(await kit('user', 'create', name, '--email', `${name}@example.com`, '--no-password')).toMatchObject({ code: 0 });
  });
  afterAll(async () => {
    await program.close();
    await rm(folder, { recursive: true, force: true });
  });
  const kit = (...args: string[]) => program.run(args);
  const json = async (...args: string[]): Promise<Record<string, never>> => {
    const { code, stdout, stderr } = await kit(...args, '--json');
    expect([code, stderr]).toEqual([0, '']);
    return JSON.parse(stdout) as Record<string, never>;
  };
  const idOf = async (name: string) =>
    (await database.db.query<{ id: string }>('select id from users where username = $1', [name]))[0]?.id ?? '';
  const note = async (values: { owner?: string; tenant?: string | undefined; days?: number }, text: string) =>
    void (await database.db.query('insert into notes (id, owner_id, tenant_id, text, at) values ($1, $2, $3, $4, $5)', [
      (number += 1),
      values.owner ?? null,
      values.tenant ?? null,
      text,
      new Date(Date.now() - (values.days ?? 0) * 86_400_000),
    ]));
  const notes = async () => (await database.db.query<{ text: string }>('select text from notes order by id')).map(({ text }) => text);

  test('kit person: export, erase with a grace, cancel, hold, release and status', async () => {
    const [ada, bob] = [await idOf('ada'), await idOf('bob')];
    await note({ owner: ada }, 'of ada');
    await note({ owner: bob }, 'of bob');
    const archive = join(folder, 'ada.zip');
    expect(await kit('person', 'export', 'ada@example.com', '--to', archive)).toMatchObject({
      stdout: expect.stringMatching(/rows .*ada\.zip/) as string,
      stderr: expect.stringMatching(/^Tables: (\d+) to do\nTables: \1 done$/m) as string,
    });
    expect((await stat(archive)).mode & 0o777).toBe(0o600);
    const files = unzip(await readFile(archive));
    expect(files.get('notes.jsonl')).toContain('of ada');
    expect([...files.values()].join()).not.toContain('of bob');
    expect(await kit('person', 'export', 'nobody', '--to', archive)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no user "nobody".') as string,
    });
    expect(await kit('person', 'export', 'ada', '--to', join(folder, 'missing/ada.zip'))).toMatchObject({ code: 1 });

    expect(await json('person', 'erase', 'ada', '--after', '30')).toMatchObject({ outcome: 'waiting' });
    expect((await kit('person', 'erase', 'ada')).stdout).toContain('npx kit person cancel');
    expect((await kit('person', 'status')).stdout).toMatch(new RegExp(`person +${ada} +waiting`));
    expect(await json('person', 'cancel', 'ada')).toEqual({ cancelled: ada });
    expect(await kit('person', 'cancel', 'ada')).toMatchObject({ code: 1, stderr: expect.stringContaining('is waiting') as string });
    expect(await kit('person', 'erase', 'ada', '--after', '-1')).toMatchObject({ code: 1 });

    expect(await kit('person', 'hold', 'ada')).toMatchObject({ code: 2, stderr: expect.stringContaining('--reason') as string });
    expect(await json('person', 'hold', 'ada', '--reason', 'case 4711')).toEqual({ held: ada });
    expect(await json('person', 'erase', 'ada')).toMatchObject({ outcome: 'held', rows: 0 });
    expect((await kit('person', 'status')).stdout).toMatch(new RegExp(`person +${ada} +waiting, held [^]*case 4711`));
    expect(await notes()).toEqual(['of ada', 'of bob']);
    expect(await json('person', 'release', 'ada')).toEqual({ released: ada });
    expect(await kit('person', 'release', 'ada')).toMatchObject({ code: 1, stderr: expect.stringContaining('no legal hold') as string });

    expect(await json('person', 'erase', 'ada')).toMatchObject({ outcome: 'finished' });
    expect(await notes()).toEqual(['of bob']);
    expect(await idOf('ada')).toBe('');
    const { erasures } = await json('person', 'status');
    expect(erasures).toContainEqual(
      expect.objectContaining({ subject_id: ada, state: 'finished', counts: expect.objectContaining({ notes: { delete: 1 } }) as object }),
    );
  });

  test('kit retention: a dry run changes nothing, a run removes rows that are not held, status shows it', async () => {
    const bob = await idOf('bob');
    await database.db.query('delete from notes');
    await note({ days: 40 }, 'old');
    await note({ days: 40, owner: bob }, 'held');
    await note({ days: 20 }, 'young');
    await kit('person', 'hold', 'bob', '--reason', 'case 1');
    expect((await kit('retention', 'run', '--dry-run')).stdout).toMatch(/notes +1\n/);
    expect(await notes()).toEqual(['old', 'held', 'young']);
    expect(await json('retention', 'run', 'notes')).toEqual({ dry_run: false, tables: [{ table: 'notes', rows: 1 }] });
    expect(await notes()).toEqual(['held', 'young']);
    await kit('person', 'release', 'bob');
    expect(await kit('retention', 'run')).toMatchObject({
      stdout: expect.stringMatching(/notes +1\n/) as string,
      stderr: expect.stringContaining('notes: 1 to do\nnotes: 1 done\n') as string,
    });
    expect((await kit('retention', 'status')).stdout).toMatch(/notes +deleted 30 days after at .* 1 +2 +-/);
    // A table whose rows cannot go keeps no other from its turn.
    await database.db.query('insert into prints (id, at) values (1, $1)', [new Date(0)]);
    await database.db.query('insert into copies (id, print_id) values (1, 1)');
    await note({ days: 40 }, 'old again');
    expect(await kit('retention', 'run')).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/notes +1\n/) as string,
      stderr: expect.stringContaining('prints: ') as string,
    });
    expect(await notes()).toEqual(['young']);
    await database.db.query('delete from copies');
    expect(await kit('retention', 'run')).toMatchObject({ code: 0, stdout: expect.stringMatching(/prints +1\n/) as string });
    expect(await kit('retention', 'run', 'note')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('The table "note" has no retention. Did you mean "notes"?') as string,
    });
  });

  test('kit tenant: export, hold, release and purge', async () => {
    const { id } = await json('tenant', 'create', 'North Ltd', '--owner', 'bob', '--slug', 'north');
    await database.db.query('delete from notes');
    await note({ tenant: id }, 'of north');
    await note({}, 'of nobody');
    const archive = join(folder, 'north.zip');
    expect((await kit('tenant', 'export', 'north', '--to', archive)).stdout).toMatch(/rows of north are in .*north\.zip/);
    const files = unzip(await readFile(archive));
    expect(files.get('notes.jsonl')).toContain('of north');
    expect([...files.values()].join()).not.toContain('of nobody');
    expect(await json('tenant', 'hold', 'north', '--reason', 'case 2')).toEqual({ held: id });
    await json('tenant', 'delete', 'north');
    await database.db.query('update tenants set deletes_at = $1', [new Date(Date.now() - 1000)]);
    expect(await json('tenant', 'purge')).toEqual({ purged: 0 });
    expect(await notes()).toEqual(['of north', 'of nobody']);
    expect(await json('tenant', 'release', 'north')).toEqual({ released: id });
    expect(await kit('tenant', 'release', 'north')).toMatchObject({ code: 1, stderr: expect.stringContaining('no legal hold') as string });
    expect(await json('tenant', 'purge')).toEqual({ purged: 1 });
    expect(await notes()).toEqual(['of nobody']);
    expect(await kit('tenant', 'export', 'north', '--to', archive)).toMatchObject({ code: 1 });
  });
});
