import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KitProgram, sourceOf } from '../../test/cli/kit-program.ts';

let folder = '';
let program: KitProgram;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kit-rollout-'));
  program = new KitProgram(folder);
});
afterAll(async () => {
  await program.close();
  await rm(folder, { recursive: true, force: true });
});

/** Each config is a file of its own: the process of the tests keeps modules that it has loaded. */
async function version(name: string, columns: string, operations: string): Promise<string> {
  const file = join(folder, `${name}.config.ts`);
  await writeFile(
    file,
    `import { createApp } from ${sourceOf('index.ts')};
import { addColumn, createIndex, createTable, dropColumn, migration, model, t } from ${sourceOf('db/index.ts')};
const people = model('people', { id: t.int().pk(), ${columns} });
const initial = migration('0001_initial', [createTable('people', { id: t.int().pk(), old: t.text().nullable() })]);
export default createApp({
  database: 'sqlite:' + ${JSON.stringify(join(folder, 'app.db'))},
  modules: [{ name: 'shop', models: [people], migrations: [initial${operations}] }],
  mount: {},
});
`,
  );
  return file;
}

test('a release is checked against the schema of the version before', async () => {
  const first = await version('first', 'old: t.text().nullable()', '');
  const schema = await program.run(['migrate', 'schema', '--config', first]);
  expect(schema.code).toBe(0);
  await writeFile(join(folder, 'schema.json'), schema.stdout);
  const drops = await version('drops', '', `, migration('0002_drop', [dropColumn('people', 'old')])`);
  expect(await program.run(['migrate', 'check-release', 'schema.json', '--config', drops])).toMatchObject({
    code: 1,
    stdout:
      'breaks  Column "people.old" is dropped or renamed, and the version before reads it. Remove the column from the code in this release, and drop it in the next one.\n',
    stderr: expect.stringContaining('The version before does not work on the tables of this version.') as string,
  });
  const stops = await version('stops', '', '');
  expect(await program.run(['migrate', 'check-release', 'schema.json', '--config', stops])).toMatchObject({ code: 0 });
  expect(await program.run(['migrate', 'check-release', 'first.config.ts', '--config', stops])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('first.config.ts is not a schema. Run in the version before: npx kit migrate schema') as string,
  });
});

test('the plan shows locks, work and the safe form, and changes nothing', async () => {
  const first = await version('first', 'old: t.text().nullable()', '');
  expect((await program.run(['migrate', '--config', first])).code).toBe(0);
  const indexed = await version('indexed', '', `, migration('0002_index', [createIndex('people', { columns: ['old'] })])`);
  for (let run = 0; run < 2; run++) {
    const { code, stdout } = await program.run(['migrate', 'plan', '--config', indexed]);
    expect(code).toBe(0);
    expect(stdout).toContain(
      'shop/0002_index\n  create index "people_old_index"\n    "people": the writer of the file, writes wait; builds an index of 0 rows',
    );
    expect(stdout).toContain('    safe form: run it at a quiet time');
    expect(stdout).toContain('Column "people.old" is in no model any more: npx kit migrate make drops it.');
  }
});

test('a new required column is written in three steps, in one with --at-once', async () => {
  const required = await version('required', 'old: t.text().nullable(), name: t.text(20)', '');
  const made = await program.run(['migrate', 'make', 'name', '--dir', join(folder, 'migrations'), '--config', required]);
  expect(made).toMatchObject({ code: 0, stderr: '' });
  expect(await readdir(join(folder, 'migrations'))).toEqual(['0002_name.ts', '0003_fill_people.ts', '0004_require_people_name.ts']);
  expect(await readFile(join(folder, 'migrations/0002_name.ts'), 'utf8')).toContain(`addColumn('people', 'name', t.text(20).nullable())`);
  expect(await readFile(join(folder, 'migrations/0004_require_people_name.ts'), 'utf8')).toContain(
    `{ online: true, backfills: ['0003_fill_people'] }`,
  );
  expect(made.stdout).toContain(
    'New required columns: "people.name". Processes of the version before leave them out of their inserts, which would fail with NOT NULL.',
  );
  const atOnce = await program.run(['migrate', 'make', 'name', '--at-once', '--print', '--config', required]);
  expect(atOnce.stdout).toContain(`addColumn('people', 'name', t.text(20), { backfill: `);
});
