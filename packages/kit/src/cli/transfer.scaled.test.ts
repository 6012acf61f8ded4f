import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createPostgresDatabase, type DatabasePlace } from 'kit/testing';
import { freePort } from '../../../../test/provision/free-port.ts';
import { scaled } from '../../../../test/provision/scale.ts';
import { KitProgram, sourceOf } from '../../test/cli/kit-program.ts';
import { openDatabase } from '../db/index.ts';

const ROWS = 40_000;
let folder = '';
let program: KitProgram;
const places: DatabasePlace[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kit-transfer-'));
  program = new KitProgram(folder);
  await writeFile(
    join(folder, 'kit.config.ts'),
    `import { createApp } from ${sourceOf('index.ts')};
import { audit } from ${sourceOf('contrib/audit/index.ts')};
import { createTable, migration, model, t } from ${sourceOf('db/index.ts')};
const notes = model('notes', { id: t.int().pk(), title: t.text(200), at: t.timestamp() });
export default createApp({
  database: 'sqlite:' + ${JSON.stringify(join(folder, 'app.db'))},
  modules: [audit(), { name: 'notes', models: [notes], migrations: [migration('0001_initial', [createTable('notes', notes.columns)])] }],
  mount: {},
});
`,
  );
  expect(await program.run(['migrate'])).toMatchObject({ code: 0 });
  const db = await openDatabase(`sqlite:${join(folder, 'app.db')}`);
  await db.query(
    `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${ROWS})
     insert into notes select i, 'note ' || i, '2026-01-01T00:00:00.000Z' from n`,
  );
  await db.close();
});
afterAll(async () => {
  await program.close();
  for (const place of places) await place.remove();
  await rm(folder, { recursive: true, force: true });
});

async function emptyDatabase(): Promise<DatabasePlace> {
  const place = await createPostgresDatabase(inject('postgresUrl'));
  places.push(place);
  return place;
}

test('a copy that is killed again and again is complete in the end, with every row once', async () => {
  const { url } = await emptyDatabase();
  const watched = await openDatabase(url);
  const command = ['database', 'copy', `sqlite:${join(folder, 'app.db')}`, url];
  const copied = async (): Promise<number> => {
    const [known] = await watched.query<{ found: boolean }>(`select to_regclass('kit_copy_tables') is not null as found`);
    if (known?.found !== true) return 0;
    const [progress] = await watched.query<{ copied_rows: bigint }>(`select copied_rows from kit_copy_tables where table_name = 'notes'`);
    return Number(progress?.copied_rows ?? 0);
  };
  for (const at of [1, ROWS / 4, ROWS / 2].slice(-scaled(1, 3))) {
    const child = program.start(command);
    const exited = once(child, 'exit');
    await expect.poll(copied, { interval: 2 }).toBeGreaterThanOrEqual(at);
    child.kill('SIGKILL');
    await exited;
  }
  const partly = await copied();
  expect(partly).toBeLessThan(ROWS);
  expect(await program.spawn(['database', 'copy', `sqlite:${join(folder, 'other.db')}`, url])).toMatchObject({ code: 1 });
  const done = await program.spawn(command);
  expect(done).toMatchObject({ code: 0, stdout: expect.stringMatching(/notes +40000 .*\n(.*\n)*copied 4000\d rows of/) as string });
  expect(await watched.query('select count(*)::int as rows, count(distinct id)::int as ids, sum(id)::text as total from notes')).toEqual([
    { rows: ROWS, ids: ROWS, total: String((ROWS * (ROWS + 1)) / 2) },
  ]);
  await watched.close();
});

test('invalid URLs, and an app without such a database, are explained', async () => {
  const file = `sqlite:${join(folder, 'app.db')}`;
  expect((await program.run(['database', 'copy', 'app.db', 'postgres://x/y'])).stderr).toContain(
    'The source must be a SQLite file: sqlite:./data/app.db',
  );
  expect((await program.run(['database', 'copy', file, file])).stderr).toContain('The target must be a PostgreSQL database: postgres://');
  expect((await program.run(['database', 'copy', file, 'postgres://x/y', '--database', 'other'])).stderr).toContain('"other"');
});

test('a copy of a file that is in use is private, complete and verified; a damaged one is not', async () => {
  const db = await openDatabase(`sqlite:${join(folder, 'app.db')}`);
  let writes = 0;
  const copied = new AbortController();
  const writer = (async () => {
    while (!copied.signal.aborted) {
      await db.query('insert into notes values ($1, $2, $3)', [100_000 + ++writes, 'while it is copied', new Date()]);
      await setImmediate();
    }
  })();
  const made = await program.run(['backup', 'create', '--json']);
  copied.abort();
  await writer;
  await db.close();
  expect(made).toMatchObject({ code: 0, stderr: '' });
  const { file } = JSON.parse(made.stdout) as { file: string };
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect((await readdir(join(folder, 'backups'))).filter((name) => name.endsWith('.partial'))).toEqual([]);
  const before = await readFile(file);
  const verified = await program.run(['backup', 'verify', file]);
  expect(verified).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/notes +4\d{4}\n(.*\n)*verified .* can be restored\./) as string,
  });
  expect(await readFile(file)).toEqual(before);

  const damaged = join(folder, 'damaged.db');
  await copyFile(file, damaged);
  const bytes = await readFile(damaged);
  bytes.fill(0xff, 4096 * 20, 4096 * 24);
  await writeFile(damaged, bytes);
  expect(await program.run(['backup', 'verify', damaged])).toMatchObject({ code: 1 });
  const other = join(folder, 'kit.config.ts');
  expect((await program.run(['backup', 'verify', other])).stderr).toContain(`${other} is not a backup that can be opened`);
  expect((await program.run(['backup', 'verify', join(folder, 'nowhere.db')])).stderr).toContain('does not exist, or cannot be read');
});

test('a backup whose audit log was changed, and one from before a migration, are reported', async () => {
  const made = await program.run(['backup', 'create', '--json', '--out', 'tampered']);
  const { file } = JSON.parse(made.stdout) as { file: string };
  const db = await openDatabase(`sqlite:${file}`);
  await db.query('update audit_chain set hash = $1', ['changed']);
  await db.close();
  const tampered = await program.run(['backup', 'verify', file]);
  expect(tampered).toMatchObject({ code: 1, stderr: expect.stringContaining('The chain of audit entries is broken:') as string });
  const old = await openDatabase(`sqlite:${file}`);
  await old.query(`delete from kit_migrations where module = 'notes'`);
  await old.close();
  expect((await program.run(['backup', 'verify', file])).stderr).toContain('were not applied when the backup was made: notes/0001_initial');
});

/** Programs and server of one version: pg_dump rejects a server that is newer than itself. */
const tools = spawnSync('pg_config', ['--bindir'], { encoding: 'utf8' });
const bin = tools.status === 0 && process.getuid?.() === 0 ? tools.stdout.trim() : undefined;
if (bin === undefined)
  console.warn('pg_dump was not tested: install PostgreSQL with its server programs (Debian: postgresql), and run the tests as root.');

test.runIf(bin !== undefined)(
  'an archive of pg_dump is restored into a scratch database, checked, and the scratch database is dropped',
  async () => {
    const run = promisify(execFile);
    const home = await mkdtemp(join(tmpdir(), 'kit-dump-'));
    const asPostgres = (command: string, args: string[]) =>
      run('setpriv', ['--reuid=postgres', '--regid=postgres', '--clear-groups', join(bin as string, command), ...args]);
    await chmod(home, 0o755);
    const data = join(home, 'data');
    await mkdir(data);
    const { stdout: owner } = await run('id', ['-u', 'postgres']);
    await chown(data, Number(owner), Number(owner));
    await asPostgres('initdb', ['-D', data, '--auth=trust', '-U', 'postgres', '--no-sync']);
    const port = await freePort();
    await asPostgres('pg_ctl', [
      '-D',
      data,
      '-w',
      '-l',
      join(data, 'log'),
      '-o',
      `-p ${port} -k ${data} -c listen_addresses=127.0.0.1`,
      'start',
    ]);
    try {
      const server = `postgres://postgres@127.0.0.1:${port}/postgres`;
      const copied = await program.run(['database', 'copy', `sqlite:${join(folder, 'app.db')}`, server]);
      expect(copied).toMatchObject({ code: 0 });
      const archive = join(folder, 'app.dump');
      await run(join(bin as string, 'pg_dump'), ['--format=custom', `--file=${archive}`, server]);
      const verified = await program.run(['backup', 'verify', archive, '--scratch', server], {
        environment: { PATH: `${bin as string}:${process.env['PATH'] ?? ''}` },
      });
      expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining('can be restored.') as string });
      const db = await openDatabase(server);
      expect(await db.query(`select datname from pg_database where datname like 'kit_verify%'`)).toEqual([]);
      await db.close();
    } finally {
      await asPostgres('pg_ctl', ['-D', data, '-m', 'immediate', 'stop']);
      await rm(home, { recursive: true, force: true });
    }
  },
);
