import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { KitProgram, sourceOf } from '../../test/cli/kit-program.ts';
import { openDatabase } from '../db/index.ts';
import { createPostgresDatabase } from 'kit/testing';

let folder = '';
let program: KitProgram;
const run: KitProgram['run'] = (...command) => program.run(...command);
let postgres: Awaited<ReturnType<typeof createPostgresDatabase>> | undefined;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kit-cli-'));
  program = new KitProgram(folder);
});
afterAll(async () => {
  await program.close();
  await rm(folder, { recursive: true, force: true });
  await postgres?.remove();
});

/** A folder with an app of its own. */
async function project(name: string, database = `sqlite:${join(folder, name, 'app.db')}`): Promise<string> {
  const place = join(folder, name);
  await mkdir(place, { recursive: true });
  await writeFile(
    join(place, 'kit.config.ts'),
    `import { createApp } from ${sourceOf('index.ts')};
import { AccountController, accounts } from ${sourceOf('contrib/accounts/index.ts')};
const cost: { logN: number; r: number; p: number } = { logN: 4, r: 8, p: 1 };
export default createApp({
  title: 'Shop',
  version: '1.2.3',
  database: ${JSON.stringify(database)},
  modules: [accounts({ passwordCost: cost })],
  mount: { '/v1': { '/account': AccountController } },
});
`,
  );
  return place;
}

describe('without an app', () => {
  test('help still works, and a command says which file is missing and how to make it', async () => {
    const help = await program.spawn(['--help'], { nodeArgs: [] });
    expect(help.code).toBe(0);
    for (const command of ['start', 'migrate', 'check', 'inspect', 'doctor', 'openapi'])
      expect(help.stdout).toMatch(new RegExp(`^  ${command} `, 'm'));
    expect(help.stdout).not.toContain('\u001B[');
    // As it is asked of the program kit_apikey.
    expect(await program.spawn(['apikey', '--help'], { nodeArgs: [] })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Core commands:') as string,
    });
    const inspect = await program.spawn(['inspect']);
    expect(inspect.code).toBe(1);
    expect(inspect.stdout).toBe('');
    expect(inspect.stderr).toContain(`No kit.config.ts found in ${folder}`);
    expect(inspect.stderr).toContain('export default createApp(');
    const module = await run(['user', 'list']);
    expect(module.code).toBe(1);
    expect(module.stderr).toContain('No kit.config.ts found');
  });

  test('a config that exports no app, or none, or cannot be loaded is named with the reason', async () => {
    const cases: [string, string][] = [
      ['export default { database: "x" };', 'is an object with database; it must be an app'],
      ['export const app = 1;', 'is missing; it must be an app'],
      ['export default () => 1;', 'is a function; it must be an app'],
      ['throw new Error("no disk");', 'could not be loaded: no disk'],
      [
        `import { createApp } from ${sourceOf('index.ts')}; export default createApp({ mount: {}, databse: 1, settings: { logLevel: 'loud' } });`,
        'databse',
      ],
    ];
    for (const [text, reason] of cases) {
      const file = join(folder, 'broken.config.ts');
      await writeFile(file, text);
      const { code, stderr, stdout } = await run(['check', '--config', file]);
      expect(code).toBe(1);
      expect(stdout).toBe('');
      expect(stderr).toContain(file);
      expect(stderr).toContain(reason);
    }
  });

  test('a wrong command line is exit code 2, a value that cannot be used is 1', async () => {
    const place = await project('usage');
    const lines = [['inspekt'], ['inspect', '--nope'], ['user', 'create'], ['user'], ['start', '--port', 'abc']];
    const runs = await Promise.all(lines.map((args) => run(args, { cwd: place })));
    expect(runs.map(({ code }) => code)).toEqual([2, 2, 2, 2, 1]);
    expect(runs[0]?.stderr).toContain('Did you mean inspect?');
  });

  test('--config counts in every form, and the last one', async () => {
    const place = await project('configs');
    for (const name of ['one', 'two'])
      await writeFile(
        join(place, `${name}.ts`),
        `import { createApp } from ${sourceOf('index.ts')};\nexport default createApp({ title: '${name}', database: 'sqlite::memory:', mount: {} });\n`,
      );
    for (const args of [['-c', 'two.ts'], ['-ctwo.ts'], ['--config=two.ts'], ['--config', 'one.ts', '--config', 'two.ts']]) {
      const { stdout } = await run([...args, 'openapi'], { cwd: place });
      expect([args, (JSON.parse(stdout) as { info: { title: string } }).info.title]).toEqual([args, 'two']);
    }
  });

  test('a Node that is too old gets a sentence, not a syntax error', async () => {
    const old = 'Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.11.0"}})';
    const { code, stderr } = await program.spawn(['--help'], { nodeArgs: ['--import', `data:text/javascript,${encodeURIComponent(old)}`] });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^kit needs Node\.js 22\.19 or later; this is 20\.11\.0 /);
  });

  test('compiled code is kept in a folder of the user, not in one that all users share', async () => {
    const place = await project('compiled');
    const [home, temporary] = [join(place, 'home'), join(place, 'tmp')];
    await mkdir(temporary);
    const environment = { HOME: home, TMPDIR: temporary, NODE_COMPILE_CACHE: '' };
    expect((await program.spawn(['--version'], { environment })).code).toBe(0);
    expect(await readdir(join(home, '.cache', 'kit'))).toHaveLength(1);
    expect(await readdir(temporary)).toEqual([]);
  });
});

describe('the route table', () => {
  test('is found from a folder below, printed as text or JSON, and needs no database', async () => {
    const place = await project('routes', 'postgres://unreachable@127.0.0.1:1/none');
    await mkdir(join(place, 'src/deep'), { recursive: true });
    const text = await run(['inspect'], { cwd: join(place, 'src/deep') });
    expect(text).toMatchObject({ code: 0, stderr: '' });
    expect(text.stdout).toMatch(/^METHOD +PATH +OPERATION +PERMISSION/);
    expect(text.stdout).toMatch(/^POST +\/v1\/account\/login +account_login +allowAny +- +- +login_client$/m);
    const json = await run(['inspect', '--json', 'login'], { cwd: place });
    expect(JSON.parse(json.stdout)).toMatchObject([
      { method: 'POST', path: '/v1/account/login', permission: 'allowAny', throttles: [{ name: 'login_client', rate: '20/min' }] },
    ]);
  });

  test('93: a resource is shown with its policy, fields, operations and statements; doctor finds the filter without an index', async () => {
    const place = join(folder, 'resources');
    await mkdir(place, { recursive: true });
    await writeFile(
      join(place, 'kit.config.ts'),
      `import { createApp, isStaff } from ${sourceOf('index.ts')};
import { responseCache, responseVersions } from ${sourceOf('middleware/index.ts')};
import { CrudController, resource, visibleTo } from ${sourceOf('crud/index.ts')};
import { createTable, migration, model, t } from ${sourceOf('db/index.ts')};
const notes = model('notes', { id: t.uuidv7().pk(), title: t.text(200), rank: t.int(), cost: t.int().nullable() }, { indexes: [{ columns: ['rank'] }] });
const migrations = [migration('0001_initial', [createTable('notes', notes.columns, { indexes: [{ columns: ['rank'] }] })])];
const noteResource = resource(notes, { unscoped: true, fields: { cost: visibleTo(isStaff) } });
class NoteController extends CrudController(noteResource, {
  permission: isStaff, filters: { title: ['eq'], rank: ['eq'] }, ordering: { by: ['rank'] },
}) {}
export default createApp({
  database: ${JSON.stringify(`sqlite:${join(place, 'app.db')}`)},
  modules: [{ name: 'notes', models: [notes], migrations }],
  middleware: [
    responseVersions({ versions: [{ version: '2' }, { version: '1' }], default: '1' }),
    responseCache({ routes: ({ field }) => field === 'list' && { maxAgeMs: 5000, tags: ['notes'] } }),
  ],
  mount: { '/v1': { '/notes': NoteController } },
});
`,
    );
    const shown = await run(['inspect', 'notes'], { cwd: place });
    expect(shown.code).toBe(0);
    expect(shown.stdout).toMatch(/^note \(table notes, NoteController\)\n├─ rows\n│ {2}└─ every row \(unscoped\)$/m);
    expect(shown.stdout).toMatch(/^│ {2}└─ cost: visible to isStaff, writable by isStaff$/m);
    const operation = (name: string) => new RegExp(`^│ {2}[├└]─ ${name}: .*\\n(?:│ {2}[│ ] {2}.*\\n)*`, 'm').exec(shown.stdout)?.[0];
    expect(operation('destroy')).toMatch(
      /DELETE \/v1\/notes\/:id\n.*permission: isStaff\n[^]*idempotency key: accepted\n[^]*statements: 1\n/,
    );
    expect(operation('list')).toMatch(/GET \/v1\/notes\n[^]*versions: 2, 1 \(default\)\n.*cache: 5 s, table:notes, notes\n/);
    const routes = JSON.parse((await run(['inspect', '--json', '/v1/notes'], { cwd: place })).stdout) as object[];
    expect(routes).toContainEqual(
      expect.objectContaining({
        method: 'GET',
        path: '/v1/notes',
        response_versions: { supported: ['2', '1'], default: '1' },
        response_cache: { max_age_ms: 5000, tags: ['table:notes', 'notes'] },
      }),
    );
    expect((await run(['inspect', '/v1/notes'], { cwd: place })).stdout).toMatch(/^METHOD .* VERSIONS +CACHE$/m);
    expect(shown.stdout).toContain('W008 no index begins with notes.title (filter)');
    expect((JSON.parse((await run(['inspect', '--json', 'note'], { cwd: place })).stdout) as { resource: string }[])[0]?.resource).toBe(
      'note',
    );
    const misspelt = await run(['inspect', 'ntoes'], { cwd: place });
    expect(misspelt.stdout).toBe('No route matches "ntoes". Did you mean "notes"?\n');
    expect(await run(['inspect', 'ntoes', '--sql'], { cwd: place })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no resource "ntoes". Did you mean "notes"?'),
    });
    expect(await run(['migrate'], { cwd: place })).toMatchObject({ code: 0, stderr: expect.not.stringContaining('W008') });
    const check = await run(['check'], { cwd: place });
    expect([check.code, check.stdout]).toEqual([
      0,
      expect.stringMatching(/^W008 NoteController: no index of "notes" serves title \(filter\)\. Add one/m),
    ]);
    const doctor = await run(['doctor'], { cwd: place });
    expect(doctor.code).toBe(0);
    expect(doctor.stdout).toContain('warning resource note: W008 no index of notes serves title, the column of a filter.');
    expect(doctor.stdout).not.toContain('serves rank');
    expect(doctor.stdout.match(/serves title/g)).toHaveLength(1);
    const older = await run(['openapi', '--spec', '3.1'], { cwd: place });
    expect((JSON.parse(older.stdout) as { openapi: string }).openapi).toBe('3.1.1');
    expect(await run(['openapi', '--spec', '4'], { cwd: place })).toMatchObject({ code: 1, stdout: '' });
  });

  test('crud purge removes what was deleted long ago and says how much; a wrong age or model is named', async () => {
    const place = join(folder, 'purge');
    const database = `sqlite:${join(place, 'app.db')}`;
    await mkdir(place, { recursive: true });
    await writeFile(
      join(place, 'kit.config.ts'),
      `import { createApp, isStaff } from ${sourceOf('index.ts')};
import { CrudController, resource } from ${sourceOf('crud/index.ts')};
import { createTable, migration, model, softDelete, t } from ${sourceOf('db/index.ts')};
const notes = model('notes', { id: t.int().pk(), title: t.text(200), ...softDelete() });
const refs = model('refs', { id: t.int().pk(), note_id: t.ref(() => notes) });
const migrations = [migration('0001_initial', [createTable('notes', notes.columns), createTable('refs', { ...refs.columns, note_id: t.ref('notes', { type: t.int() }) })])];
class NoteController extends CrudController(resource(notes, { unscoped: true }), { permission: isStaff }) {}
export default createApp({
  database: ${JSON.stringify(database)},
  modules: [{ name: 'notes', models: [notes, refs], migrations }],
  mount: { '/v1': { '/notes': NoteController } },
});
`,
    );
    expect((await run(['migrate'], { cwd: place })).code).toBe(0);
    const rows = await openDatabase(database);
    const day = (days: number) => new Date(Date.now() - days * 86_400_000);
    for (const [id, deleted] of [
      [1, day(100)],
      [2, day(100)],
      [3, day(10)],
      [4, null],
    ] as const)
      await rows.execute('insert into notes (id, title, deleted_at) values ($1, $2, $3)', [id, 'x', deleted]);
    await rows.execute('insert into refs (id, note_id) values (1, 2)');
    const purged = await run(['crud', 'purge', '--older-than', '90d', 'notes'], { cwd: place });
    expect([purged.code, purged.stdout.trim()]).toEqual([
      0,
      '1 deleted rows of notes removed, and 0 that went with them. 1 kept, because other rows refer to them.',
    ]);
    expect(await rows.query('select id from notes order by id')).toEqual([{ id: 2 }, { id: 3 }, { id: 4 }]);
    const json = await run(['crud', 'purge', '--older-than', '48h', 'notes', '--json'], { cwd: place });
    expect(JSON.parse(json.stdout)).toEqual({ removed: 1, related: 0, kept: 1 });
    await rows.close();
    const [age, unknown, missing] = await Promise.all([
      run(['crud', 'purge', '--older-than', '3 weeks', 'notes'], { cwd: place }),
      run(['crud', 'purge', '--older-than', '90d', 'note'], { cwd: place }),
      run(['crud', 'purge', 'notes'], { cwd: place }),
    ]);
    expect([age?.code, age?.stderr]).toEqual([1, expect.stringContaining('--older-than takes days or hours')]);
    expect([unknown?.code, unknown?.stderr]).toEqual([1, expect.stringContaining('Did you mean "notes"?')]);
    expect(missing?.code).toBe(2);
  });

  test('openapi diff says what changed since a document was kept, and fails when it breaks callers', async () => {
    const place = await project('diff');
    const base = join(place, 'base.json');
    expect((await run(['openapi', '--out', base], { cwd: place })).code).toBe(0);
    const same = await run(['openapi', 'diff', base], { cwd: place });
    expect([same.code, same.stdout.trim()]).toEqual([0, 'Nothing changed for callers.']);
    const document = JSON.parse(await readFile(base, 'utf8')) as { paths: Record<string, object> };
    const older = join(place, 'older.json');
    await writeFile(older, JSON.stringify({ ...document, paths: { ...document.paths, '/v1/gone': { get: { responses: {} } } } }));
    const [broken, wrong] = await Promise.all([
      run(['openapi', 'diff', older, base, '--format', 'json'], { cwd: place }),
      run(['openapi', 'diff', join(place, 'missing.json')], { cwd: place }),
    ]);
    expect([broken?.code, JSON.parse(broken?.stdout ?? '')]).toMatchObject([
      1,
      { bump: 'major', changes: [{ id: 'operation-removed', operation: 'GET /v1/gone' }] },
    ]);
    expect([wrong?.code, wrong?.stderr]).toEqual([1, expect.stringContaining('missing.json.')]);
    // Compared with something else everything would be new, and a check that looks for breaking changes would pass.
    for (const [name, text, sentence] of [
      ['package.json', '{"version":"1"}', 'it has no `openapi` and `paths`'],
      ['null.json', 'null', 'it has no `openapi` and `paths`'],
      ['list.json', '[]', 'it has no `openapi` and `paths`'],
      ['swagger.json', '{"swagger":"2.0","paths":{}}', 'is a Swagger 2.0 document, which is not supported.'],
    ] as const) {
      await writeFile(join(place, name), text);
      const other = await run(['openapi', 'diff', join(place, name)], { cwd: place });
      expect([other.code, other.stdout, other.stderr]).toEqual([1, '', expect.stringContaining(sentence)]);
    }
    const entry = { id: 'operation-removed', operation: 'GET /v1/gone', until: '2999-12-31', reason: 'Nobody called it.' };
    const allow = async (name: string, entries: unknown) => {
      await writeFile(join(place, name), JSON.stringify(entries));
      return run(['openapi', 'diff', older, base, '--allow', name], { cwd: place });
    };
    const [allowed, expired, misspelt] = await Promise.all([
      allow('allow.json', [entry]),
      allow('expired.json', [{ ...entry, until: '2020-01-01' }]),
      allow('misspelt.json', [{ ...entry, id: 'operation-remved' }]),
    ]);
    expect([allowed.code, allowed.stdout]).toEqual([
      0,
      expect.stringContaining('Allowed until 2999-12-31: operation-removed: GET /v1/gone.'),
    ]);
    expect([expired.code, expired.stdout]).toEqual([1, expect.stringContaining('Expired on 2020-01-01')]);
    expect([misspelt.code, misspelt.stderr]).toEqual([1, expect.stringContaining('Did you mean "operation-removed"?')]);
  });

  test('a file that cannot be read or written is named, without a stack', async () => {
    const place = await project('unwritable');
    for (const [args, file] of [
      [['openapi', '--out', 'kit.config.ts/api.json'], 'kit.config.ts/api.json cannot be written'],
      [['openapi', '--check', '.'], '. cannot be read: it is a folder.'],
      [['-c', '.', 'inspect'], `${place} (given with --config) is a folder`],
    ] as const) {
      const { code, stderr } = await run(args, { cwd: place });
      expect([code, stderr]).toEqual([1, expect.stringContaining(`error: ${file}`)]);
      expect(stderr).not.toMatch(/^ +at /m);
    }
  });

  test('output that a full disk lost is a failure, a reader that has enough is not', { skip: !existsSync('/dev/full') }, async () => {
    const place = await project('full');
    const kit = `"$0" --conditions=source "$1" openapi`;
    const shell = (script: string) =>
      spawnSync('bash', ['-c', script, process.execPath, join(import.meta.dirname, '../../bin/kit.js')], { cwd: place, encoding: 'utf8' });
    const full = shell(`${kit} > /dev/full`);
    expect([full.status, full.stderr]).toEqual([1, expect.stringMatching(/^error: The output could not be written: ENOSPC/)]);
    const enough = shell(`set -o pipefail; ${kit} | head -1`);
    expect([enough.status, enough.stdout, enough.stderr]).toEqual([0, '{\n', '']);
  });

  test('--json is obeyed by every form of openapi', async () => {
    const place = await project('openapi-json');
    const written = await run(['openapi', '--json', '--out', 'api.json'], { cwd: place });
    expect(JSON.parse(written.stdout)).toMatchObject({ file: 'api.json', paths: expect.any(Number) as number });
    expect(JSON.parse((await run(['openapi', '--json', '--check', 'api.json'], { cwd: place })).stdout)).toMatchObject({ ok: true });
    expect(JSON.parse((await run(['openapi', 'diff', '--json', 'api.json'], { cwd: place })).stdout)).toMatchObject({ changes: [] });
  });

  test('becomes an OpenAPI file that --check holds against the code', async () => {
    const place = await project('openapi');
    expect((await run(['openapi', '--check', 'api.json'], { cwd: place })).code).toBe(1);
    expect((await run(['openapi', '--out', 'api.json', '--mount', '/v1'], { cwd: place })).code).toBe(0);
    const text = await readFile(join(place, 'api.json'), 'utf8');
    expect(JSON.parse(text)).toMatchObject({ info: { title: 'Shop', version: '1.2.3' } });
    expect((await run(['openapi', '--mount', '/v1'], { cwd: place })).stdout).toBe(text);
    expect((await run(['openapi', '--check', 'api.json', '--mount', '/v1'], { cwd: place })).code).toBe(0);
    await writeFile(join(place, 'api.json'), text.replace('Shop', 'Shed'));
    expect((await run(['openapi', '--check', 'api.json', '--mount', '/v1'], { cwd: place })).stderr).toContain(
      'is not the current document',
    );
  });
});

describe('models and migrations', () => {
  test('what a model says and no migration does becomes a file, once', async () => {
    const place = join(folder, 'make');
    await mkdir(place, { recursive: true });
    await writeFile(
      join(place, 'kit.config.ts'),
      `import { createApp } from ${sourceOf('index.ts')};
import { model, t } from ${sourceOf('db/index.ts')};
const orders = model('orders', { id: t.uuidv7().pk(), note: t.text(80).nullable() });
export default createApp({ database: 'sqlite:app.db', modules: [{ name: 'shop', models: [orders] }], mount: {} });
`,
    );
    const check = await run(['migrate', '--check', '--json'], { cwd: place });
    expect(check.code).toBe(1);
    expect(JSON.parse(check.stdout)).toMatchObject({
      drift: { models: ['Table "orders" has a model but no migration creates it.'], database: [] },
    });
    const made = await run(['migrate', 'make', 'add_orders'], { cwd: place });
    expect(made).toMatchObject({
      code: 0,
      stderr: '',
      stdout: `migrations/0001_add_orders.ts written for shop.

Add it to the module:
  import addOrders from './migrations/0001_add_orders.ts';
  migrations: [ …, addOrders]
Then: kit migrate
`,
    });
    // It is easily forgotten, and then nothing is pending.
    const forgotten = await run(['migrate'], { cwd: place });
    expect(forgotten.stdout).toMatch(
      /^drift   Table "orders" has a model but no migration creates it\.\n.*add the migration that it wrote to its module\.$/m,
    );
    const source = await readFile(join(place, 'migrations/0001_add_orders.ts'), 'utf8');
    expect(source).toContain("export default migration('0001_add_orders', [");
    expect((await run(['migrate', 'make', 'add_orders', '--print'], { cwd: place })).stdout).toBe(source);
    const again = await run(['migrate', 'make', 'add_orders'], { cwd: place });
    expect(again.code).toBe(1);
    expect(again.stderr).toContain('exists already; nothing was written. Add it to the migrations of shop, if it is not there.');
    expect((await run(['migrate', 'make', 'Add Orders'], { cwd: place })).code).toBe(1);
    expect((await run(['migrate', 'make', 'x', '--module', 'shed'], { cwd: place })).stderr).toContain(
      'There is no module "shed"; there are kit, shop.',
    );
    const unwritable = await run(['migrate', 'make', 'add_orders', '--dir', 'kit.config.ts/x'], { cwd: place });
    expect([unwritable.code, unwritable.stderr]).toEqual([1, expect.stringMatching(/^error: \S+ cannot be written: [^\n]*\n$/)]);
  });

  test('tables changed by hand are drift', async () => {
    const place = await project('drift');
    expect((await run(['migrate'], { cwd: place })).code).toBe(0);
    expect((await run(['migrate', 'make', 'nothing'], { cwd: place })).stdout).toContain('there is nothing to write');
    const database = await openDatabase(`sqlite:${join(place, 'app.db')}`);
    await database.query('alter table users add column nickname text');
    const besides = await run(['migrate', '--check'], { cwd: place });
    expect([besides.code, besides.stdout]).toEqual([
      0,
      expect.stringMatching(/^extra   Column "users\.nickname" is in the database but in no migration\. This version works without it\.$/m),
    ]);
    const doctor = await run(['doctor'], { cwd: place });
    expect([doctor.code, doctor.stdout]).toEqual([
      0,
      expect.stringMatching(/^ok      tables: Column "users\.nickname" is in the database/m),
    ]);
    const [index] = await database.query<{ name: string }>(`select name from sqlite_master where type = 'index' and sql is not null`);
    await database.query(`drop index ${index?.name}`);
    const missing = await run(['migrate', '--check'], { cwd: place });
    expect(missing.code).toBe(1);
    expect(missing.stderr).toContain('they were changed by hand. Change them back, or restore a backup.');
    await database.close();
  });

  test('an older version may run on a database that a newer one migrated, unless it cannot write to it', async () => {
    const place = await project('newer');
    expect((await run(['migrate'], { cwd: place })).code).toBe(0);
    const database = await openDatabase(`sqlite:${join(place, 'app.db')}`);
    await database.query('alter table users add column nickname text');
    const applied = 'insert into kit_migrations (module, name, checksum, applied_at) values ($1, $2, $3, $4)';
    await database.query(applied, ['accounts', '9001_nickname', 'x', new Date()]);
    const older = await run(['migrate', '--check'], { cwd: place });
    expect([older.code, older.stdout]).toEqual([0, expect.stringContaining('The database is newer than this version, which can use it.')]);
    expect(older.stdout).toContain('accounts/9001_nickname (applied by a newer version)');
    await database.query('alter table users rename column username to login');
    const broken = await run(['migrate', '--check'], { cwd: place });
    expect([broken.code, broken.stdout]).toEqual([1, expect.stringContaining('Column "users.username" is missing from the database.')]);
    expect(broken.stderr).toContain('A newer version of the app has changed the tables (accounts/9001_nickname)');
    expect(broken.stderr).not.toContain('by hand');
    await database.close();
  });

  test('doctor warns of throttles that count all clients of a proxy as one', async () => {
    const place = join(folder, 'proxies');
    await mkdir(place, { recursive: true });
    await writeFile(
      join(place, 'kit.config.ts'),
      `import { createApp, Controller, route } from ${sourceOf('index.ts')};
import { allowAny } from ${sourceOf('permissions/index.ts')};
import { clientThrottle } from ${sourceOf('throttle/index.ts')};
class Things extends Controller { list = route.get('/', { permission: allowAny }, () => undefined); }
export default createApp({ database: 'sqlite:app.db', throttles: [clientThrottle('10/min')], mount: { '/': { '/things': Things } } });
`,
    );
    expect((await run(['migrate'], { cwd: place })).code).toBe(0);
    expect((await run(['doctor'], { cwd: place })).stdout).toMatch(/^warning proxies: .* Set TRUSTED_PROXIES to its address, or to none/m);
    expect((await run(['doctor'], { cwd: place, environment: { TRUSTED_PROXIES: 'none' } })).stdout).not.toContain('warning proxies');
    const wrong = await run(['doctor'], { cwd: place, environment: { TRUSTED_PROXIES: 'nginx' } });
    expect([wrong.code, wrong.stdout]).toEqual([
      1,
      expect.stringContaining('TRUSTED_PROXIES or trustedProxies: "nginx" is neither an IP address'),
    ]);
    expect((await run(['inspect'], { cwd: place })).stdout).toContain('JSON 32 levels, 10000 members and 50000 array items');
  });

  test('doctor finds a table that is gone, though every migration was applied', async () => {
    const place = await project('gone');
    expect((await run(['migrate'], { cwd: place })).code).toBe(0);
    const database = await openDatabase(`sqlite:${join(place, 'app.db')}`);
    await database.query('drop table kit_idempotency');
    await database.close();
    const { code, stdout } = await run(['doctor'], { cwd: place });
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(/^fault {3}tables: W017 Table "kit_idempotency" is missing from the database\. .*restore a backup/m),
    ]);
  });
});

test('an idempotency key is freed by the ID of the list, however many are newer', async () => {
  const place = await project('keys');
  expect((await run(['migrate'], { cwd: place })).code).toBe(0);
  const database = await openDatabase(`sqlite:${join(place, 'app.db')}`);
  const columns = 'scope_hash, key, caller, operation, fingerprint, token, state, lease_until, created_at, expires_at';
  const hash = `case i when 0 then '${'ab'.repeat(32)}' else printf('%064x', i) end`;
  await database.execute(
    `with recursive n(i) as (select 0 union all select i + 1 from n where i < 1100)
     insert into kit_idempotency (${columns}) select ${hash}, 'shared', 'user:' || i, 'order_create', '${'0'.repeat(64)}',
       '00000000-0000-7000-8000-000000000000', 'running', $1, strftime('%Y-%m-%dT%H:%M:%fZ', '2026-01-01', '+' || i || ' seconds'), $1 from n`,
    [new Date('2030-01-01')],
  );
  await database.close();
  const several = await run(['idempotency', 'release', 'shared'], { cwd: place });
  expect([several.code, several.stderr]).toEqual([1, expect.stringContaining('give the ID of one')]);
  const freed = await run(['idempotency', 'release', 'abababababab'], { cwd: place });
  expect(freed).toMatchObject({ code: 0, stdout: 'The key shared is free again.\n' });
  expect((await run(['idempotency', 'release', 'abababababab'], { cwd: place })).stderr).toContain('No record has the key or ID');
});

describe.each(['SQLite', 'PostgreSQL'])('on %s', (name) => {
  let place = '';
  beforeAll(async () => {
    if (name === 'PostgreSQL') postgres = await createPostgresDatabase(inject('postgresUrl'));
    place = await project(name.toLowerCase(), name === 'PostgreSQL' ? postgres?.url : undefined);
  });

  test('migrate says what is pending, shows the SQL, applies it once, and doctor agrees', async () => {
    const pending = await run(['migrate', '--check'], { cwd: place });
    expect(pending.code).toBe(1);
    expect(pending.stdout).toContain('pending accounts/0001_initial');
    const dry = await run(['migrate', '--dry-run'], { cwd: place });
    expect(dry.code).toBe(0);
    // Neither of them created the file.
    expect((await readdir(place)).filter((file) => file.startsWith('app.db'))).toEqual([]);
    expect(dry.stdout).toMatch(/create table .*users/i);
    const early = await run(['user', 'list'], { cwd: place });
    expect(early.code).toBe(1);
    expect(early.stderr).toMatch(
      /The database (?:sqlite|postgres(?:ql)?):\S+ is not up to date: 9 migrations are pending \(\S+, \S+, \S+ and 6 more\)\. Run: npx kit migrate/,
    );
    expect(early.stderr).not.toContain('postgres:postgres@');
    expect((await run(['doctor'], { cwd: place })).code).toBe(1);
    // Two at once: one applies, the other waits and finds nothing to do.
    const both = await Promise.all([1, 2].map(() => program.spawn(['migrate', '--json'], { cwd: place })));
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    const applied = both.flatMap(({ stdout }) => (JSON.parse(stdout) as { applied: string[] }).applied);
    expect(applied.sort()).toEqual([
      'accounts/0001_initial',
      'kit/0001_throttles',
      'kit/0002_secrets_and_idempotency',
      'kit/0003_deleted_users',
      'kit/0004_changes',
      'kit/0005_erasures',
      'kit/0006_failed_erasures',
      'kit/0007_erased_subjects',
      'kit/0008_changes_in_order',
    ]);
    expect(await run(['migrate'], { cwd: place })).toMatchObject({ code: 0, stdout: 'The database is up to date.\n' });
    expect((await run(['migrate', '--check'], { cwd: place })).code).toBe(0);
    const doctor = await run(['doctor', '--json'], { cwd: place });
    expect(doctor.code).toBe(0);
    expect(JSON.parse(doctor.stdout)).toMatchObject({ ok: true });
    expect((await run(['check'], { cwd: place })).stdout).toMatch(/^ok Shop: \d+ routes, 1 module\.$/m);
  });

  test('users are made with a password from a pipe or a generated one, and never show a hash', async () => {
    const made = await program.spawn(['user', 'create', 'Ada', '--email', 'ada@example.com', '--staff'], {
      cwd: place,
      input: 'correct horse battery\n',
    });
    expect(made).toMatchObject({ code: 0, stderr: '' });
    expect(made.stdout).toMatch(/^User ada created \(id [0-9a-f-]{36}\)\.\n$/);
    const generated = await run(['user', 'create', 'bob', '--generate'], { cwd: place });
    expect(generated.stdout.trim().split('\n').at(-1)).toMatch(/^[A-Za-z0-9]{20}$/);
    expect((await run(['user', 'create', 'ci', '--no-password'], { cwd: place })).code).toBe(0);
    expect((await run(['user', 'create-superuser', 'root', '--generate'], { cwd: place })).stdout).toMatch(/^Superuser root created \(id /);
    const list = await run(['user', 'list', '--json'], { cwd: place });
    expect(JSON.parse(list.stdout)).toMatchObject([
      { username: 'ada', email: 'ada@example.com', is_staff: true },
      { username: 'bob', is_staff: false },
      { username: 'ci' },
      { username: 'root', is_staff: true, is_superuser: true },
    ]);
    expect(list.stdout).not.toMatch(/scrypt|password/);
  });

  test('what cannot be done is said in one sentence with exit code 1', async () => {
    const cases: [string[], string, string][] = [
      [['user', 'create', 'ada'], 'correct horse battery\n', 'A user of this name exists already.'],
      [['user', 'create-superuser', 'ada'], '', 'ada exists. Create another user, or make this one staff in the admin site: Users.'],
      [['user', 'create', 'eve'], 'short\n', 'A password has at least 10 characters.'],
      [['user', 'create', 'eve'], '', 'Password expected on standard input, which is empty.'],
      [['user', 'deactivate', 'nobody'], '', 'There is no user "nobody".'],
    ];
    const results = await Promise.all(cases.map(([args, input]) => run(args, { cwd: place, input })));
    expect(results).toEqual(cases.map(([, , sentence]) => ({ code: 1, stdout: '', stderr: `error: ${sentence}\n` })));
    const json = await run(['user', 'deactivate', 'nobody', '--json'], { cwd: place });
    expect(JSON.parse(json.stderr)).toEqual({ error: { code: 'user_not_found', message: 'There is no user "nobody".' } });
  });

  test('a started server lets a user in, obeys deactivation by another process at once, and stops gracefully', async () => {
    const server = program.start(['start', '--port', '0'], { cwd: place, environment: { LOG_LEVEL: 'silent' } });
    const ended = once(server, 'close');
    try {
      let output = '';
      server.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
      await expect.poll(() => output, { timeout: 300_000 }).toContain('listens on');
      const address = /http:\/\/\S+/.exec(output)?.[0] ?? '';
      const login = await fetch(`${address}/v1/account/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ login: 'ada@example.com', password: 'correct horse battery' }),
      });
      expect(login.status).toBe(200);
      const cookie = login.headers.getSetCookie()[0]?.split(';')[0] ?? '';
      const me = async (): Promise<number> => (await fetch(`${address}/v1/account/me`, { headers: { cookie } })).status;
      expect(await me()).toBe(200);
      expect((await run(['user', 'deactivate', 'ada'], { cwd: place })).code).toBe(0);
      expect(await me()).toBe(401);
      expect((await run(['user', 'activate', 'ada'], { cwd: place })).code).toBe(0);
      expect(await me()).toBe(401);
    } finally {
      server.kill('SIGTERM');
    }
    expect(await ended).toEqual([0, null]);
  });
});
