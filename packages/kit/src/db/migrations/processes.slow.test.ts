import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kit-processes-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const index = pathToFileURL(join(import.meta.dirname, '..', 'index.ts')).href;

/** Runs a small program in several processes that start their work together, and gives back what each printed. */
async function runTogether(source: string, url: string, times: number): Promise<string[]> {
  const file = join(folder, `program-${Math.random().toString(36).slice(2)}.mjs`);
  const ready = `console.log('ready');\nawait new Promise((done) => process.stdin.once('data', done));\nprocess.stdin.destroy();\n`;
  await writeFile(
    file,
    `import * as kit from '${index}';\nconst db = await kit.openDatabase(${JSON.stringify(url)});\n${ready}${source}\nawait db.close();\n`,
  );
  const programs = Array.from({ length: times }, () => start(file));
  await Promise.all(programs.map((program) => program.ready));
  for (const { child } of programs) child.stdin?.write('go\n');
  return Promise.all(programs.map((program) => program.output));
}

function start(file: string): { child: ChildProcess; ready: Promise<void>; output: Promise<string> } {
  const child = spawn(process.execPath, ['--conditions=source', file], { stdio: ['pipe', 'pipe', 'pipe'] });
  let [output, errors] = ['', ''];
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const ended = new Promise<string>((done, failed) => {
    child.once('close', (code) =>
      code === 0 ? done(output.replace(/^ready\n/, '').trim()) : failed(new Error(`the program ended with ${code}: ${errors}`)),
    );
  });
  const ready = new Promise<void>((done) => {
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      if (output.startsWith('ready')) done();
    });
  });
  return { child, ready: Promise.race([ready, ended.then(() => undefined)]), output: ended };
}

const MIGRATE = `
const { createTable, migration, sql, t, migrate, addColumn, alterColumn } = kit;
const slow = { sqlite: "with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000000) insert into steps (id) select count(*) / 2000000 from n", postgres: ["select pg_sleep(0.3)", "insert into steps (id) values (1)"] };
const migrations = [
  migration('0001_initial', [createTable('steps', { id: t.int().pk(), label: t.text().nullable() })]),
  migration('0002_slow', [sql(slow)]),
  migration('0003_rebuild', [addColumn('steps', 'at', t.timestamp().dbDefault('now')), alterColumn('steps', 'label', t.text(), { backfill: "''" })]),
];
const report = await migrate(db, [{ name: 'shared', migrations }], { backup: false });
console.log(JSON.stringify(report.applied));
`;

const WRITE = `
for (let each = 0; each < 60; each++) {
  await db.transaction(async (tx) => {
    const lock = tx.dialect === 'postgres' ? ' for update' : '';
    const [row] = await tx.query('select value from tally where id = 1' + lock);
    if (each % 10 === 0) await new Promise((done) => setTimeout(done, 3));
    await tx.query('update tally set value = $1 where id = 1', [row.value + 1]);
  });
  await db.query('insert into marks (owner) values ($1)', [process.pid]);
}
`;

describeDatabases('several processes', (database) => {
  test('migrate at once: every migration runs exactly once and all of them end well', async () => {
    const outputs = await runTogether(MIGRATE, database.url, 3);
    const applied = outputs.flatMap((output) => JSON.parse(output) as string[]);
    expect(applied.toSorted()).toEqual(['shared/0001_initial', 'shared/0002_slow', 'shared/0003_rebuild']);
    expect(await database.db.query('select id, label from steps')).toEqual([{ id: 1, label: '' }]);
    expect(await database.db.query('select name from kit_migrations')).toHaveLength(3);
  }, 120_000);

  test('write at once: no update is lost and no process fails', async () => {
    await database.db.query('create table tally (id integer primary key, value integer not null)');
    await database.db.query('create table marks (owner integer not null)');
    await database.db.query('insert into tally (id, value) values (1, 0)');
    await runTogether(WRITE, database.url, 3);
    expect(await database.db.query('select value from tally')).toEqual([{ value: 180 }]);
    expect(await database.db.query('select count(*) as n from marks')).toEqual([{ n: 180 }]);
  }, 120_000);
});
