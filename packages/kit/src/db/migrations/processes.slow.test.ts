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

/** Runs a small program in a process of its own and gives back what it printed. */
async function run(source: string, url: string): Promise<string> {
  const file = join(folder, `program-${Math.random().toString(36).slice(2)}.mjs`);
  await writeFile(file, `import * as kit from '${index}';\nconst url = ${JSON.stringify(url)};\n${source}`);
  const child: ChildProcess = spawn(process.execPath, ['--conditions=source', '--disable-warning=ExperimentalWarning', file], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const exit = await new Promise<number | null>((done) => child.once('close', done));
  if (exit !== 0) throw new Error(`the program ended with ${exit}: ${output}`);
  return output.trim();
}

const MIGRATE = `
const { createTable, migration, sql, t, migrate, addColumn, alterColumn } = kit;
const slow = { sqlite: "with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000) insert into steps (id) select 1 from n limit 1", postgres: ["select pg_sleep(0.3)", "insert into steps (id) values (1)"] };
const migrations = [
  migration('0001_initial', [createTable('steps', { id: t.int().pk(), label: t.text().nullable() })]),
  migration('0002_slow', [sql(slow)]),
  migration('0003_rebuild', [addColumn('steps', 'at', t.timestamp().dbDefault('now')), alterColumn('steps', 'label', t.text(), { backfill: "''" })]),
];
const db = await kit.openDatabase(url);
const report = await migrate(db, [{ name: 'shared', migrations }], { backup: false });
await db.close();
console.log(JSON.stringify(report.applied));
`;

const WRITE = `
const db = await kit.openDatabase(url);
for (let each = 0; each < 60; each++) {
  await db.transaction(async (tx) => {
    const lock = tx.dialect === 'postgres' ? ' for update' : '';
    const [row] = await tx.query('select value from tally where id = 1' + lock);
    if (each % 10 === 0) await new Promise((done) => setTimeout(done, 3));
    await tx.query('update tally set value = $1 where id = 1', [row.value + 1]);
  });
  await db.query('insert into marks (owner) values ($1)', [process.pid]);
}
await db.close();
console.log('done');
`;

describeDatabases('several processes', (database) => {
  test('migrate at once: every migration runs exactly once and all of them end well', async () => {
    const outputs = await Promise.all(Array.from({ length: 3 }, () => run(MIGRATE, database.url)));
    const applied = outputs.flatMap((output) => JSON.parse(output) as string[]);
    expect(applied.toSorted()).toEqual(['shared/0001_initial', 'shared/0002_slow', 'shared/0003_rebuild']);
    expect(await database.db.query('select id, label from steps')).toEqual([{ id: 1, label: '' }]);
    expect(await database.db.query('select name from kit_migrations')).toHaveLength(3);
  }, 120_000);

  test('write at once: no update is lost and nobody fails', async () => {
    await database.db.query('create table tally (id integer primary key, value integer not null)');
    await database.db.query('create table marks (owner integer not null)');
    await database.db.query('insert into tally (id, value) values (1, 0)');
    await Promise.all([run(WRITE, database.url), run(WRITE, database.url), run(WRITE, database.url)]);
    expect(await database.db.query('select value from tally')).toEqual([{ value: 180 }]);
    expect(await database.db.query('select count(*) as n from marks')).toEqual([{ n: 180 }]);
  }, 120_000);
});
