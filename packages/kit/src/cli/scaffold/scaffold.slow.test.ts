import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { KitProgram } from '../../../test/cli/kit-program.ts';
import { openDatabase } from '../../db/open/open-database.ts';
import { createPostgresDatabase, type DatabasePlace } from '../../testing/test-database.ts';

const root = join(import.meta.dirname, '../../../../..');
const templates = join(root, 'packages/kit/templates');

let folder = '';
let program: KitProgram;
let postgres: DatabasePlace;

/** Tables as another program made them. */
const TABLES = {
  sqlite: [
    'create table customers (id integer primary key, email varchar(200) not null unique, vip boolean not null default 0, note text)',
    `create table invoices (number varchar(36) primary key, customer_id integer not null references customers (id) on delete cascade,
       parent varchar(36) references invoices (number), total real not null, state varchar(20) not null default 'open', place geometry)`,
    'create index invoices_by_customer on invoices (customer_id, total desc)',
    "create index invoices_open on invoices (state) where state = 'open'",
  ],
  postgres: [
    "create type stage as enum ('lead', 'won')",
    'create table companies (id uuid primary key default gen_random_uuid(), name varchar(80) not null unique, tags text[] not null)',
    `create table deals (id uuid primary key, company_id uuid not null references companies (id), owner_id uuid not null, stage stage not null default 'lead',
       amount numeric(12,2) not null, size bigint not null, at timestamptz not null, details jsonb not null default '{}', place point,
       created_at timestamptz not null default now(), updated_at timestamptz not null default now(), version integer not null default 1)`,
    'create index deals_of_owner on deals (owner_id, id desc)',
    'create index deals_of_owner_by_stage on deals (owner_id, stage)',
  ],
};

async function createTables(url: string, statements: readonly string[]): Promise<void> {
  const database = await openDatabase(url);
  for (const statement of statements) await database.query(statement);
  await database.close();
}

const kit = (...args: string[]) => program.run(args);
const onPostgres = (...args: string[]) => program.run(args, { environment: { DATABASE_URL: postgres.url } });
const text = (path: string) => readFile(join(folder, path), 'utf8');

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kit-scaffold-'));
  program = new KitProgram(folder);
  for (const path of ['minimal/src', 'minimal/migrations', 'common/kit.config.ts'])
    await cp(join(templates, path), join(folder, path.slice(path.indexOf('/') + 1)), { recursive: true });
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  const tsconfig = JSON.parse(await readFile(join(templates, 'common/tsconfig.json'), 'utf8')) as { compilerOptions: object };
  const compilerOptions = { ...tsconfig.compilerOptions, customConditions: ['source'] };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ ...tsconfig, compilerOptions }));
  const conditions = ['source', 'node', 'development|production'];
  const resolve = { conditions, externalConditions: ['source', 'node'] };
  const config = { resolve: { conditions }, ssr: { resolve }, test: { execArgv: ['--conditions=source'], isolate: false, maxWorkers: 1 } };
  await writeFile(join(folder, 'vitest.config.ts'), `export default ${JSON.stringify(config)};`);
  await kit('migrate');
  await createTables(`sqlite:${join(folder, 'data/app.db')}`, TABLES.sqlite);
  postgres = await createPostgresDatabase(inject('postgresUrl'));
  await createTables(postgres.url, TABLES.postgres);
});
afterAll(async () => {
  await program.close();
  await postgres.remove();
  await rm(folder, { recursive: true, force: true });
});

test('a new resource: files, next steps, and nothing is written over', async () => {
  const written = await kit('scaffold', 'project', 'name:text(80)', 'archived:bool', 'due:date?');
  expect(written).toMatchObject({ code: 0, stderr: '' });
  expect(written.stdout).toContain("mount: { '/v1': { '/projects': ProjectController } }");
  expect(await text('src/projects.ts')).toContain("owner: 'owner_id'");
  // Without it, kit check warns that nobody's export has the rows: W040.
  expect(await text('src/projects.ts')).toContain('owner_id: t.uuid().readOnly().person()');
  const again = await kit('scaffold', 'projects', 'name:text(80)');
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('exist already; nothing was written. Use --force') as string });
  expect(await text('src/projects.ts')).toContain('archived: t.bool()');
  await writeFile(join(folder, 'src/projects.ts'), '// changed');
  const forced = await kit('scaffold', 'project', 'name:text(80)', 'archived:bool', 'due:date?', '--force');
  expect(forced).toMatchObject({ code: 0, stderr: '' });
  expect(await text('src/projects.ts')).toContain('archived: t.bool()');
});

test('kit seed creates the rows that the app declares, and finds them at the next run; not in production', async () => {
  expect((await kit('seed')).stdout).toBe('demo 3 created, 0 changed, 0 as they were\n');
  expect((await kit('seed', 'demo', '--json')).stdout).toBe('[{"name":"demo","created":0,"changed":0,"unchanged":3}]\n');
  expect((await kit('seed', '--list')).stdout).toBe('demo\n');
  expect(await kit('seed', 'dmo')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('There is no seed "dmo". Did you mean "demo"?') as string,
  });
  const production = await program.run(['seed'], { environment: { NODE_ENV: 'production' } });
  expect(production).toMatchObject({ code: 1, stderr: expect.stringContaining('NODE_ENV is production') as string });
});

test('a dry run prints the files and writes none', async () => {
  const dry = await kit('scaffold', 'wishes', 'text:text', '--dry-run');
  expect(dry.stdout).toContain('// src/wishes.ts');
  expect(dry.stdout).toContain('export class WishController');
  expect(existsSync(join(folder, 'src/wishes.ts'))).toBe(false);
});

test('tenant and owner: rows are of both, and lists and filters have indexes', async () => {
  await kit(
    'scaffold',
    'tasks',
    'title:text(120)',
    'status:enum(open,done)',
    'price:decimal(10,2)',
    'n:bigint',
    '--tenant',
    'org_id',
    '--owner',
    'author_id',
  );
  const source = await text('src/tasks.ts');
  expect(source).toContain("{ columns: ['org_id', 'author_id', '-id'] }");
  expect(source).toContain("{ columns: ['org_id', 'author_id', 'status'] }");
  expect(source).toContain("filters: { status: ['eq'] }");
  await kit('scaffold', 'category', 'name:text(40)', '--tenant', 'org_id');
  expect(await text('src/categories.ts')).toContain('/** Callers see, create and change the rows of their tenant. */');
});

describe('rejected, with what to write instead', () => {
  test.each([
    [['Bad Name'], /"Bad Name": .* Did you mean bad_name\?/],
    [['things', 'title'], /"title" is not a field\. Write name:kind/],
    [['things', 'title:txt'], /has an unknown kind/],
    [['things', 'a:int', 'a:int'], /"a" is given twice/],
    [['things', 'id:int'], /Every scaffolded model has the column "id"/],
    [['things', 'other_id:ref(others)'], /Run npx kit scaffold others and add otherModule\(\) to the app first/],
    [['notes'], /The app already has a model of the table "notes"/],
    [['nothing', '--from-table'], /There is no table "nothing" in sqlite:/],
    [['invoices', '--from-table', '--owner', 'user_id'], /--owner is user_id, and "invoices" has the columns number, customer_id/],
    [[], /Write the name of a model/],
  ])('%j', async (args, message) => {
    expect(await kit('scaffold', ...args)).toMatchObject({ code: 1, stderr: expect.stringMatching(message) as string });
  });
});

test('an existing SQLite table, with the table that it refers to, its key, indexes and what cannot be expressed', async () => {
  const { stdout } = await kit('scaffold', 'invoices', '--from-table');
  expect(stdout).toContain('written src/customers.ts');
  expect(stdout).toContain('invoices.place has the type geometry, which no column kind stores; it is left out.');
  expect(stdout).toContain('The index invoices_open of invoices is partial');
  const source = await text('src/invoices.ts');
  expect(source).toContain('number: t.text(36).pk()');
  expect(source).toContain("customer_id: t.ref(() => customers, { onDelete: 'cascade' })");
  expect(source).toContain("parent: t.ref('invoices', { column: 'number', type: t.text(36) }).nullable()");
  expect(source).toContain("{ columns: ['customer_id', '-total'], name: 'invoices_by_customer' }");
  expect(source).toContain("relations: { customer: one(() => customers, 'customer_id') }");
  expect(source).toContain('permission: isStaff');
  expect(source).toContain("static override readonly tags = ['invoices'];");
  expect(await text('src/customers.ts')).toContain("{ columns: ['email'], unique: true }");
});

test('an existing PostgreSQL table with an owner: types, enums, defaults, times and version', async () => {
  const { stdout, stderr } = await onPostgres('scaffold', 'deals', '--from-table', '--owner', 'owner_id');
  expect(stderr).toBe('');
  expect(stdout).toContain('deals.place has the type point');
  const source = await text('src/deals.ts');
  for (const line of [
    "stage: t.enum(['lead', 'won']).dbDefault('lead')",
    'amount: t.decimal(12, 2)',
    'size: t.bigint()',
    '...timestamps()',
    '...versioned()',
  ])
    expect(source).toContain(line);
  expect(source).toContain("filters: { stage: ['eq'] }");
  expect(await text('src/companies.ts')).toContain('tags: t.array(t.text())');
});

test('the tables are adopted: their migrations are recorded, the rest runs, and --check reports what differs', async () => {
  const app = await text('src/app.ts');
  const names = [
    ['customers', 'customerModule', "'/customers': CustomerController"],
    ['invoices', 'invoiceModule', "'/invoices': InvoiceController"],
    ['projects', 'projectModule', "'/projects': ProjectController"],
  ] as const;
  const imports = names.map(([file, module, mount]) => `import { ${module}, ${mount.split(' ')[1]} } from './${file}.ts';\n`).join('');
  await writeFile(
    join(folder, 'src/adopted.ts'),
    imports +
      app
        .replace('noteModule()', `noteModule(), ${names.map(([, module]) => `${module}()`).join(', ')}`)
        .replace("'/notes': NoteController", `'/notes': NoteController, ${names.map(([, , mount]) => mount).join(', ')}`),
  );
  const config = (await text('kit.config.ts')).replace('./src/app.ts', './src/adopted.ts');
  await writeFile(join(folder, 'adopted.config.ts'), config);
  const adopted = (...args: string[]) => kit(...args, '--config', 'adopted.config.ts');
  expect(await adopted('migrate')).toMatchObject({ code: 1, stderr: expect.stringContaining('already exists') as string });
  expect((await adopted('migrate', '--adopt')).stdout).toMatch(
    /applied customers\/0001_create_customers\n[\s\S]*applied projects\/0001_create_projects/,
  );
  expect(await adopted('check')).toMatchObject({ code: 0 });
  // What a declaration of ours would have created otherwise: the types of foreign SQLite tables.
  const drift = await adopted('scaffold', '--check');
  expect(drift.code).toBe(1);
  expect(drift.stdout).toContain('Column "customers.email" is varchar(200) in the database, text in the model.');
  expect(drift.stdout).not.toContain('projects');
  await adopted('scaffold', 'bugs', 'title:text', 'project_id:ref(projects)');
  expect(await text('src/bugs.ts')).toContain("relations: { project: one(() => projects, 'project_id') }");
});

test('everything that was written type-checks, and its tests pass on SQLite and PostgreSQL', () => {
  const run = (...args: string[]) =>
    spawnSync(process.execPath, args, {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, KIT_TEST_POSTGRES_URL: inject('postgresUrl'), VITEST: undefined, NO_COLOR: '1' },
    });
  // One checker, beside other tests: four, the default, check what they share four times.
  const types = run(join(root, 'node_modules/typescript/bin/tsc'), '--checkers', '1');
  // The sources of the toolkit are stricter than a new project is.
  expect(types.stdout.split('\n').filter((line) => /^(?:src|test|migrations)\//.test(line))).toEqual([]);
  const tests = run(join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--root', folder);
  expect(tests.stderr + tests.stdout).toMatch(/Test Files {2}8 passed/);
});
