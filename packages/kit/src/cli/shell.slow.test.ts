import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KitProgram, sourceOf } from '../../test/cli/kit-program.ts';

let folder = '';
let program: KitProgram;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kit-shell-'));
  program = new KitProgram(folder);
  await writeFile(
    join(folder, 'kit.config.ts'),
    `import { createApp, isAuthenticated } from ${sourceOf('index.ts')};
import { accounts } from ${sourceOf('contrib/accounts/index.ts')};
import { CrudController, resource } from ${sourceOf('crud/index.ts')};
import { createTable, migration, model, t } from ${sourceOf('db/index.ts')};
const notes = model('notes', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(200) });
class Notes extends CrudController(resource(notes, { owner: 'owner_id' }), { permission: isAuthenticated }) {}
export default createApp({
  database: 'sqlite:./app.db',
  modules: [accounts(), { name: 'notes', models: [notes], migrations: [migration('0001_initial', [createTable('notes', notes.columns)])] }],
  mount: { '/v1': { '/notes': Notes } },
});
`,
  );
  await program.run(['migrate']);
  for (const name of ['ada', 'bob']) await program.run(['user', 'create', name, '--no-password']);
});
afterAll(async () => {
  await program.close();
  await rm(folder, { recursive: true, force: true });
});

test('lines have the database, and the resources as a user reaches them', async () => {
  const { code, stdout, stderr } = await program.spawn(['shell'], {
    input: `(await db.query('select 41 + 1 as sum'))[0].sum
const ada = await as('ada')
const { title } = await ada.note.write().create({
  title: 'Milk',
})
(await ada.note.rows()).map((note) => 'ada: ' + note.title)
(await (await as('bob')).note.rows()).map((note) => 'bob: ' + note.title)
Object.keys(resources)
`,
  });
  expect(stderr).toBe('');
  expect([code, stdout]).toEqual([0, "42\n[ 'ada: Milk' ]\n[]\n[ 'note' ]\n"]);
});

test('the first line that fails ends the command', async () => {
  const { code, stdout, stderr } = await program.spawn(['shell'], { input: `1 + 1\nawait as('nobody')\n3 + 3\n` });
  expect([code, stdout]).toEqual([1, '2\n']);
  expect(stderr).toMatch(/^error: Error: There is no user "nobody"\. kit user list shows all of them\.\n\s+at async kit shell:1:\d+\n$/);
});

test('a line that ends in a promise shows its value', async () => {
  const lines = ["as('ada').then((ada) => Object.keys(ada))", "db.query('select 1 as one')", "Promise.reject(new Error('too late'))"];
  const { code, stdout, stderr } = await program.spawn(['shell'], { input: `${lines.join('\n')}\n` });
  expect(stdout).toBe("[ 'note' ]\n[ { one: 1 } ]\n");
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^error: Error: too late\n/)]);
});

test('an error of a line shows the frames of the line, and none of the shell', async () => {
  for (const line of ['missing', 'await as(missing)']) {
    const { code, stderr } = await program.spawn(['shell'], { input: `${line}\n` });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: ReferenceError: missing is not defined\n\s+at kit shell:1:/);
    expect(stderr).not.toMatch(/node:|shell\.ts/);
  }
});
