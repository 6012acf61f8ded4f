// Does a list stay as fast deep inside it, and among many rows of others? Page 1,000 by cursor compared with page 1 (20 rows a page, without
// a count), and the first page of an owner's 1,000 rows among 1,000,000 rows of others compared with the same among 1,000. One request at a
// time through the whole pipeline, on both databases, with the index that the order needs.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import type { App } from '../packages/kit/src/app/index.ts';
import { CrudController, resource } from '../packages/kit/src/crud/index.ts';
import { createTable, migration, model, t } from '../packages/kit/src/db/index.ts';
import { isAuthenticated } from '../packages/kit/src/permissions/index.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, ratioOf } from './harness/contest.ts';
import { benchOwner, startCrudApp } from './harness/crud-app.ts';
import { ratePerSecond } from './harness/loop.ts';
import type { Ratio } from './harness/ratio.ts';

const PAGE = 20;
const DEEP = 1000;
const indexes = [{ columns: ['owner_id', '-created_at', '-id'] }];
const columns = {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  title: t.text(80),
  body: t.text(400),
  created_at: t.timestamp().dbDefault('now').readOnly(),
};
const deep = model('deep_rows', columns, { indexes });
const crowded = model('crowded_rows', columns, { indexes });
const quiet = model('quiet_rows', columns, { indexes });
const options = {
  permission: isAuthenticated,
  ordering: { by: ['created_at'], default: ['-created_at'] },
  page: { default: PAGE, count: 'none' },
} as const;
class DeepController extends CrudController(resource(deep, { owner: 'owner_id' }), options) {}
class CrowdedController extends CrudController(resource(crowded, { owner: 'owner_id' }), options) {}
class QuietController extends CrudController(resource(quiet, { owner: 'owner_id' }), options) {}
const tables = [deep, crowded, quiet];
const module = {
  name: 'rows',
  models: tables,
  migrations: [
    migration(
      '0001_initial',
      tables.map((each) => createTable(each.name, columns, { indexes })),
    ),
  ],
};

/** Rows of owners 2 to 101, or of owner 1. */
async function fill(app: App, table: string, rows: number, isOwn: boolean): Promise<void> {
  const isPostgres = app.db.dialect === 'postgres';
  const owner = isOwn
    ? `'${benchOwner(1)}'`
    : isPostgres
      ? `('00000000-0000-7000-8000-' || lpad((i % 100 + 2)::text, 12, '0'))::uuid`
      : `printf('00000000-0000-7000-8000-%012d', i % 100 + 2)`;
  const kind = isOwn ? '8100' : '8200';
  const id = isPostgres
    ? `('01890000-0000-7000-${kind}-' || lpad(i::text, 12, '0'))::uuid`
    : `printf('01890000-0000-7000-${kind}-%012d', i)`;
  const at = isPostgres
    ? `timestamptz '2026-01-01' + i * interval '1 second'`
    : `strftime('%Y-%m-%dT%H:%M:%fZ', 1767225600 + i, 'unixepoch')`;
  const numbers = isPostgres ? `generate_series(1, ${rows}) as n(i)` : `n`;
  const recursion = isPostgres ? '' : `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${rows}) `;
  await app.db.execute(
    `insert into ${table} (id, owner_id, title, body, created_at) ${recursion}select ${id}, ${owner}, 'a row', 'some text of the row', ${at} from ${numbers}`,
  );
}

async function page(app: App, path: string): Promise<{ readonly items: readonly unknown[]; readonly next: string | null }> {
  const response = await app.inject({ url: path });
  if (response.statusCode !== 200) throw new Error(`${path}: ${response.statusCode} ${response.body}`);
  return response.json();
}

async function measure(context: BenchmarkContext, app: App, others: number): Promise<Ratio[]> {
  const { dialect } = app.db;
  await fill(app, 'deep_rows', PAGE * (DEEP + 1), true);
  await fill(app, 'quiet_rows', 1000, true);
  await fill(app, 'quiet_rows', 1000, false);
  await fill(app, 'crowded_rows', 1000, true);
  await fill(app, 'crowded_rows', others, false);
  await app.db.execute('analyze');
  let place = '/v1/deep';
  for (let number = 1; number < DEEP; number += 1) place = `/v1/deep${String((await page(app, place)).next)}`;
  const contender = (name: string, path: string) => ({
    name,
    measure: (seconds: number) =>
      ratePerSecond(async () => {
        if ((await page(app, path)).items.length !== PAGE) throw new Error(`${name}: not a whole page`);
      }, seconds),
  });
  context.print(`\n${dialect}`);
  const depth = await contest(context, [contender('page 1', '/v1/deep'), contender('page 1,000', place)]);
  const crowd = await contest(context, [contender('among 1,000', '/v1/quiet'), contender('among many', '/v1/crowded')]);
  return [
    { name: `crud-depth-page-1000-${dialect}`, value: ratioOf(depth, 'page 1', 'page 1,000'), goal: 1.2, atMost: true },
    { name: `crud-depth-among-others-${dialect}`, value: ratioOf(crowd, 'among 1,000', 'among many'), goal: 1.3, atMost: true },
  ];
}

export default defineBenchmark({
  name: 'crud-depth',
  question: 'What does page 1,000 of a list cost over page 1, and a list among a million rows of others over one among a thousand?',
  async run(context) {
    const others = context.quick ? 50_000 : 1_000_000;
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    const server = await startPostgresServer();
    const mount = { '/v1': { '/deep': DeepController, '/crowded': CrowdedController, '/quiet': QuietController } };
    const ratios: Ratio[] = [];
    try {
      for (const database of [`sqlite:${join(folder, 'bench.db')}`, server.url]) {
        const app = await startCrudApp({ database, modules: [module], mount });
        try {
          ratios.push(...(await measure(context, app, others)));
        } finally {
          await app.close();
        }
      }
      return ratios;
    } finally {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
