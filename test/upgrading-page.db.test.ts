import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { insert, list, migrate, runBackfills, type Database, type MigrationModule, type Model, type Row } from 'kit/db';
import { describeDatabases } from 'kit/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from './architecture/module-graph.ts';
import { checkRelease, releaseSchema } from '../packages/kit/src/db/rollout/check-release.ts';

/** A release as the page shows it. */
interface Release {
  readonly people: Model;
  readonly shop: MigrationModule;
}

let folder = '';
let releases: readonly Release[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kit-upgrading-'));
  const page = await readFile(join(root, 'docs/guide/upgrading.md'), 'utf8');
  const source = JSON.stringify(pathToFileURL(join(root, 'packages/kit/src/db/index.ts')).href);
  const found: Release[] = [];
  for (const number of [1, 2, 3]) {
    const [, code = ''] = new RegExp(`\`\`\`ts title="release-${number}\\.ts"\\n([\\s\\S]*?)\`\`\``).exec(page) ?? [];
    expect(code).not.toBe('');
    const file = join(folder, `release-${number}.ts`);
    await writeFile(file, code.replaceAll(`'kit/db'`, source));
    found.push((await import(pathToFileURL(file).href)) as Release);
  }
  releases = found;
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Writes and reads as the code of a release does, until it is stopped. */
function run(db: Database, { people }: Release, values: (n: number) => object): { stop(): Promise<number> } {
  const ended = new AbortController();
  const writing = (async () => {
    let n = 0;
    while (!ended.signal.aborted) {
      await insert(db, people, values(n++) as never);
      await list(db, people, { limit: 5 });
      await new Promise((done) => setTimeout(done, 2));
    }
    return n;
  })();
  writing.catch(() => undefined);
  return {
    stop() {
      ended.abort();
      return writing;
    },
  };
}

describeDatabases('a new required column, as upgrading.md shows it', (database) => {
  test('no statement of the release before fails while both releases run, and every row has a value in the end', async () => {
    const { db } = database;
    const [first, second, third] = releases as [Release, Release, Release];
    const [name, full] = [
      (n: number) => ({ first: 'Ada', last: `No. ${n}` }),
      (n: number) => ({ first: 'Bob', last: `No. ${n}`, full_name: `Bob No. ${n}` }),
    ];
    expect(checkRelease(releaseSchema([first.shop]), [second.shop])).toEqual({ breaks: [], warnings: [] });
    expect(checkRelease(releaseSchema([second.shop]), [third.shop])).toMatchObject({
      breaks: [],
      warnings: [expect.stringContaining('requires a value')],
    });

    await migrate(db, [first.shop]);
    const old = run(db, first, name);
    await migrate(db, [second.shop], { backup: false });
    const middle = run(db, second, full);
    await new Promise((done) => setTimeout(done, 100));
    let rows = await old.stop();
    await expect(migrate(db, [third.shop], { backup: false })).rejects.toThrow(
      'Run: npx kit backfill run 0003_fill_people, then npx kit migrate.',
    );
    await runBackfills(db, [second.shop]);
    await migrate(db, [third.shop], { backup: false });
    const last = run(db, third, full);
    await new Promise((done) => setTimeout(done, 100));
    rows += (await middle.stop()) + (await last.stop());
    const found = (await list(db, third.people)) as Row<Model>[] as { first: string; last: string; full_name: string }[];
    expect(found).toHaveLength(rows);
    expect(found.filter((row) => row.full_name !== `${row.first} ${row.last}`)).toEqual([]);
  });
});
