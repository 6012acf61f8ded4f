import { once } from 'node:events';
import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeDatabases } from 'kit/testing';
import { KitProgram, sourceOf } from '../cli/kit-program.ts';
import { runUntilKilled } from '../run-until-killed.ts';
import { unzip } from './unzip.ts';

const PROGRAM = join(import.meta.dirname, 'export-until-killed.ts');
const ROWS = 6000;
/** Too random to become short in an archive. */
const TEXT = `select id, $1, $2, id || ${Array.from({ length: 30 }, (_, n) => `'-' || ((id * 7919 + ${n} * 104729) % 1000003)`).join(' || ')} from n`;

function config(url: string): string {
  return `import { createApp, isAuthenticated } from ${sourceOf('index.ts')};
import { accounts } from ${sourceOf('contrib/accounts/index.ts')};
import { audit } from ${sourceOf('contrib/audit/index.ts')};
import { personalData } from ${sourceOf('contrib/personal/index.ts')};
import { tenants } from ${sourceOf('contrib/tenants/index.ts')};
import { createTable, migration, model, t } from ${sourceOf('db/index.ts')};
import { fakeClock } from ${sourceOf('testing/index.ts')};
const notes = model('notes', { id: t.int().pk(), owner_id: t.text(64).person(), tenant_id: t.text(64).tenant(), text: t.text().personal() });
export default createApp({
  database: ${JSON.stringify(url)},
  modules: [accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }), audit(), tenants({ create: isAuthenticated }), personalData(), {
    name: 'shop', models: [notes], migrations: [migration('0001_initial', [createTable('notes', notes.columns)])],
  }],
  ...(process.env.AHEAD === undefined ? {} : { clock: fakeClock(new Date(Date.now() + Number(process.env.AHEAD) * 1000)) }),
  mount: {},
});
`;
}

describeDatabases('exports and erasures that are killed with SIGKILL', (database) => {
  let folder = '';
  let program: KitProgram;
  const run = async (...args: string[]): Promise<Record<string, never>> => {
    const { code, stdout, stderr } = await program.run([...args, '--json']);
    expect([code, stderr]).toEqual([0, '']);
    return JSON.parse(stdout) as Record<string, never>;
  };
  const idOf = async (table: string, column: string, name: string) =>
    (await database.db.query<{ id: string }>(`select id from ${table} where ${column} = $1`, [name]))[0]?.id ?? '';
  const notesOf = async (column: string, id: string) =>
    Number((await database.db.query<{ n: number | bigint }>(`select count(*) as n from notes where ${column} = $1`, [id]))[0]?.n);
  let [ada, bob, acme, other] = ['', '', '', ''];
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kit-killed-'));
    program = new KitProgram(folder);
    await writeFile(join(folder, 'kit.config.ts'), config(database.url));
    expect(await program.run(['migrate'])).toMatchObject({ code: 0 });
    for (const name of ['ada', 'bob']) {
      expect(await program.run(['user', 'create', name, '--email', `${name}@example.com`, '--no-password'])).toMatchObject({ code: 0 });
      expect(await program.run(['tenant', 'create', `of ${name}`, '--slug', `of-${name}`, '--owner', name])).toMatchObject({ code: 0 });
    }
    [ada, bob] = [await idOf('users', 'username', 'ada'), await idOf('users', 'username', 'bob')];
    [acme, other] = [await idOf('tenants', 'slug', 'of-ada'), await idOf('tenants', 'slug', 'of-bob')];
    for (const [from, owner, tenant] of [
      [1, ada, other],
      [ROWS + 1, bob, acme],
    ] as const)
      await database.db.query(
        `with recursive n(id) as (select ${from} union all select id + 1 from n where id < ${from + ROWS - 1})
         insert into notes (id, owner_id, tenant_id, text) ${TEXT}`,
        [owner, tenant],
      );
  }, 300_000);
  afterAll(async () => {
    await program.close();
    await rm(folder, { recursive: true, force: true });
  });
  const exists = (path: string) =>
    access(path).then(
      () => true,
      () => false,
    );

  test.each([
    ['person', 'ada', 'owner_id'],
    ['tenant', 'of-bob', 'tenant_id'],
  ])(
    'kit %s export leaves no file that looks whole, and the next one is whole',
    async (kind, name, column) => {
      const file = join(folder, `${kind}.zip`);
      const child = program.start([kind, 'export', name, '--to', file]);
      const exited = once(child, 'exit');
      // As soon as there is a part of it, or it was faster.
      await expect.poll(async () => (await exists(`${file}.part`)) || (await exists(file)), { interval: 1, timeout: 120_000 }).toBe(true);
      child.kill('SIGKILL');
      await exited;
      const whole = async () =>
        unzip(await readFile(file))
          .get('notes.jsonl')
          ?.trim()
          .split('\n') ?? [];
      const found = (await exists(file)) ? (await whole()).length : 0;
      expect([0, ROWS]).toContain(found);
      await run(kind, 'export', name, '--to', file);
      const id = kind === 'person' ? ada : other;
      const lines = (await whole()).map((line) => JSON.parse(line) as Record<string, unknown>);
      expect([lines.length, new Set(lines.map((line) => line['id'])).size]).toEqual([ROWS, ROWS]);
      expect(lines.every((line) => line[column] === id)).toBe(true);
      expect(await exists(`${file}.part`)).toBe(false);
    },
    300_000,
  );

  test('an export that a person has asked for over HTTP is written by the next process, whole and once', async () => {
    const asked = 'insert into personal_exports (user_id, state, requested_at, bytes) values ($1, $2, $3, 0)';
    await database.db.query(asked, [ada, 'waiting', database.db.clock.now()]);
    // A part is written and the second one begun.
    await runUntilKilled(PROGRAM, [folder, '0'], 2);
    const parts = () =>
      database.db.query<{ attempt: string }>('select distinct attempt from personal_export_parts where user_id = $1', [ada]);
    const [killed] = await parts();
    expect(killed).toBeDefined();
    expect(await database.db.query('select state from personal_exports where user_id = $1', [ada])).toEqual([{ state: 'running' }]);
    // While its lease runs nobody else writes it.
    await runUntilKilled(PROGRAM, [folder, '0'], Infinity);
    expect(await parts()).toEqual([killed]);
    await runUntilKilled(PROGRAM, [folder, '120'], Infinity);
    const found = await database.db.query<{ data: Uint8Array }>(
      'select p.data from personal_export_parts p join personal_exports e on e.user_id = p.user_id and e.attempt = p.attempt where e.user_id = $1 order by p.number',
      [ada],
    );
    const ids = unzip(Buffer.concat(found.map(({ data }) => data)))
      .get('notes.jsonl')
      ?.trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { id: number }).id);
    expect(ids).toEqual(Array.from({ length: ROWS }, (_, n) => n + 1));
    expect((await parts()).length).toBe(1);
    expect(await parts()).not.toEqual([killed]);
  }, 300_000);

  test('kit person erase and kit tenant purge go on where they were, and count every row once', async () => {
    expect(await program.run(['tenant', 'delete', 'of-ada'])).toMatchObject({ code: 0 });
    await database.db.query('update tenants set deletes_at = $1 where id = $2', [new Date(Date.now() - 1000), acme]);
    for (const [command, column, id] of [
      [['person', 'erase', ada], 'owner_id', ada],
      [['tenant', 'purge'], 'tenant_id', acme],
    ] as const) {
      for (const left of [ROWS - 1, ROWS / 2]) {
        const child = program.start([...command]);
        const exited = once(child, 'exit');
        await expect.poll(() => notesOf(column, id), { interval: 1, timeout: 120_000 }).toBeLessThanOrEqual(left);
        child.kill('SIGKILL');
        await exited;
      }
      expect(await program.run([...command])).toMatchObject({ code: 0 });
      expect(await notesOf(column, id)).toBe(0);
      const erasures = (await run('person', 'status'))['erasures'] as unknown as readonly object[];
      expect(erasures).toContainEqual(
        expect.objectContaining({
          subject_id: id,
          state: 'finished',
          counts: expect.objectContaining({ notes: { delete: ROWS } }) as object,
        }),
      );
    }
    expect(await idOf('users', 'username', 'ada')).toBe('');
    expect(await idOf('users', 'username', 'bob')).toBe(bob);
  }, 300_000);
});
