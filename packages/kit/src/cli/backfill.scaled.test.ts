import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { scaled } from '../../../../test/provision/scale.ts';
import { describeDatabases } from 'kit/testing';
import { KitProgram, sourceOf } from '../../test/cli/kit-program.ts';
import type { Database } from '../db/index.ts';

const ROWS = 4000;

/** Migration 0003 makes the column of the back-fill required; `effects` has a line for every row that was done. */
function config(url: string, { isRequired = true, batchMs = 0 } = {}): string {
  return `import { createApp, isStaff } from ${sourceOf('index.ts')};
import { CrudController, resource } from ${sourceOf('crud/index.ts')};
import { alterColumn, backfill, createTable, insert, migration, model, t, update } from ${sourceOf('db/index.ts')};
const people = model('people', { id: t.int().pk(), first: t.text().personal(), full_name: t.text()${isRequired ? '' : '.nullable()'} });
const effects = model('effects', { id: t.uuidv7().pk(), person_id: t.int(), process: t.int() });
export default createApp({
  database: ${JSON.stringify(url)},
  modules: [{
    name: 'shop',
    models: [people, effects],
    migrations: [
      migration('0001_initial', [
        createTable('people', { ...people.columns, full_name: t.text().nullable() }),
        createTable('effects', effects.columns),
      ]),
      ${isRequired ? "migration('0003_require', [alterColumn('people', 'full_name', t.text())], { backfills: ['0002_full_name'] })," : ''}
    ],
    backfills: [
      backfill('0002_full_name', {
        model: model('people', { id: t.int().pk(), first: t.text(), full_name: t.text().nullable() }),
        batch: 20,
        async run(tx, rows) {
          await new Promise((done) => setTimeout(done, ${batchMs}));
          for (const { id, first } of rows) {
            await update(tx, people, id, { full_name: first + ' Doe' });
            await insert(tx, effects, { person_id: id, process: process.pid });
          }
        },
      }),
    ],
  }],
  mount: { '/v1': { '/people': class PersonController extends CrudController(resource(people, { unscoped: true }), { permission: isStaff }) {} } },
});
`;
}

describeDatabases('kit backfill', (database) => {
  test('a run that is killed again and again, beside another one, does every row exactly once', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'kit-backfill-'));
    const program = new KitProgram(folder);
    const { db } = database;
    try {
      await writeFile(join(folder, 'kit.config.ts'), config(database.url, { isRequired: false }));
      expect(await program.spawn(['migrate'])).toMatchObject({ code: 0 });
      await seed(db);
      await writeFile(join(folder, 'kit.config.ts'), config(database.url));
      expect(await program.run(['migrate'])).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('Run: npx kit backfill run 0002_full_name, then npx kit migrate.') as string,
      });
      const done = async (): Promise<number> => {
        const [row] = await db.query<{ n: number | bigint }>('select count(*) as n from effects');
        return Number(row?.n);
      };
      for (const share of [0.01, 0.2, 0.4, 0.55].slice(-scaled(2, 4))) {
        const child = program.start(['backfill', 'run']);
        const exited = once(child, 'exit');
        await expect.poll(done, { interval: 3, timeout: 60_000 }).toBeGreaterThanOrEqual(ROWS * share);
        child.kill('SIGKILL');
        await exited;
      }
      expect(await done()).toBeLessThan(ROWS);
      expect((await program.run(['backfill', 'status'])).stdout).toMatch(
        /shop\/0002_full_name +(running|stopped) +\d\d % +\d+ of 4000 .* shop\/0003_require/,
      );
      const { stdout: inspected } = await program.run(['inspect', 'people']);
      for (const shown of ['shop/0002_full_name, required by shop/0003_require', 'personal: first']) expect(inspected).toContain(shown);
      // While the migration waits for it.
      expect(await program.run(['inspect', 'people', '--sql'])).toMatchObject({
        code: 1,
        stdout: expect.stringMatching(/shop\/0002_full_name: (running|stopped), \d\d %, required by shop\/0003_require/) as string,
        stderr: expect.stringContaining('The SQL is not shown.') as string,
      });
      const asJson = await program.run(['inspect', 'people', '--sql', '--json']);
      expect((JSON.parse(asJson.stdout) as object[])[0]).toMatchObject({
        sql: null,
        backfills: [{ id: 'shop/0002_full_name', progress: expect.stringMatching(/\d\d %$/) as string }],
      });
      const both = await Promise.all([program.spawn(['backfill', 'run']), program.spawn(['backfill', 'run', '0002_full_name'])]);
      expect(both.map(({ code }) => code)).toEqual([0, 0]);
      expect(both[0]?.stdout).toContain('finished shop/0002_full_name');
      expect(await done()).toBe(ROWS);
      expect(await numbers(db, 'select count(distinct person_id) as n from effects')).toBe(ROWS);
      expect(await numbers(db, `select count(*) as n from people where full_name = first || ' Doe'`)).toBe(ROWS);
      expect((await program.run(['backfill', 'status', '--json'])).stdout).toContain('"state": "finished"');
      expect(await program.run(['migrate'])).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('applied shop/0003_require') as string,
      });
      expect((await program.run(['inspect', 'people', '--sql'])).stdout).toContain('shop/0002_full_name: finished, 100 %');
    } finally {
      await program.close();
      await rm(folder, { recursive: true, force: true });
    }
  }, 120_000);

  test('pause, resume and SIGTERM stop a run between two batches', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'kit-backfill-'));
    const program = new KitProgram(folder);
    const { db } = database;
    try {
      await writeFile(join(folder, 'kit.config.ts'), config(database.url, { batchMs: 30 }));
      await db.query('update kit_backfills set state = $1, position = null, rows_done = 0, finished_at = null', ['running']);
      await db.query('delete from effects');
      const child = program.start(['backfill', 'run']);
      const exited = once(child, 'exit') as Promise<[number | null]>;
      let complaints = '';
      child.stderr.on('data', (chunk: Buffer) => (complaints += chunk.toString()));
      await expect.poll(() => numbers(db, 'select count(*) as n from effects'), { interval: 5, timeout: 30_000 }).toBeGreaterThan(0);
      expect(await program.run(['backfill', 'pause', '0002_full_name'])).toMatchObject({ code: 0, stdout: 'paused shop/0002_full_name\n' });
      await expect.poll(() => complaints, { timeout: 10_000 }).toContain('shop/0002_full_name waits: paused');
      const paused = await numbers(db, 'select count(*) as n from effects');
      expect((await program.run(['backfill', 'status'])).stdout).toMatch(/ paused +\d+ %/);
      expect(await program.run(['backfill', 'resume', 'shop/0002_full_name'])).toMatchObject({ code: 0 });
      await expect.poll(() => numbers(db, 'select count(*) as n from effects'), { interval: 5, timeout: 10_000 }).toBeGreaterThan(paused);
      child.kill('SIGTERM');
      expect((await exited)[0]).toBe(0);
      expect((await numbers(db, 'select count(*) as n from effects')) % 20).toBe(0);
      const wrong = await program.run(['backfill', 'pause', '0002_full_nam']);
      expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('Did you mean "0002_full_name"?') as string });
    } finally {
      await program.close();
      await rm(folder, { recursive: true, force: true });
    }
  }, 60_000);
});

async function seed(db: Database): Promise<void> {
  for (let start = 0; start < ROWS; start += 1000)
    await db.query(
      `insert into people (id, first) values ${Array.from({ length: 1000 }, (_, index) => `(${start + index}, 'p${start + index}')`).join(', ')}`,
    );
}

async function numbers(db: Database, sql: string): Promise<number> {
  const [row] = await db.query<{ n: number | bigint }>(sql);
  return Number(row?.n);
}
