// Is a full-text search of generic CRUD as fast as one written by hand? A million pages of 100 owners, 12 words each; the newest 50 pages of one
// owner that have a common word (1 page in 20), a rare one (1 in 20,000), two words, and the start of a word. By hand means a bare Fastify route
// and the driver: on PostgreSQL the same generated column and index, on SQLite an FTS5 table under the rowids of the pages. Times are of requests
// without a network, one after another; both sides answer with the same rows, and no side counts.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import Fastify from 'fastify';
import pg from 'pg';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { createApp } from '../packages/kit/src/app/assemble/create-app.ts';
import { migrateApp } from '../packages/kit/src/app/data/migration-modules.ts';
import { CrudController, fullText, resource } from '../packages/kit/src/crud/index.ts';
import type { Database } from '../packages/kit/src/db/engine/db.ts';
import { createTable, migration, model, openDatabase, t } from '../packages/kit/src/db/index.ts';
import { isAuthenticated } from '../packages/kit/src/permissions/index.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import type { Ratio } from './harness/ratio.ts';

const options = { indexes: [{ columns: ['owner_id', '-id'] }], fullText: [{ columns: ['title', 'body'] }] };
const columns = { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(100), body: t.text() };
const pages = model('pages', columns, options);
class PageController extends CrudController(resource(pages, { owner: 'owner_id' }), {
  permission: isAuthenticated,
  search: fullText({ columns: ['title', 'body'] }),
  page: { count: 'none' },
  etag: false,
}) {}
const tables = migration('0001_initial', [createTable('pages', columns, options)]);

const SIZE = 1_000_000;
const SIZE_QUICK = 20_000;
const OWNERS = 100;
/** Words of a text: every row has one of 20, one of 20,000 and so on, so that how often each occurs is known. */
const COMMON = 20;
const RARE = 20_000;
const PREFIX = '01890000-0000-7000-8000-';
const OWNER = `${PREFIX}${(8).toString(16).padStart(12, 'f')}`;

/** What is searched for, and how a hand would say it. */
const SEARCHES = [
  { name: 'common', text: 'common8', postgres: 'common8:*', sqlite: 'common8*' },
  { name: 'rare', text: 'rare108', postgres: 'rare108:*', sqlite: 'rare108*' },
  { name: 'two words', text: 'common8 rare1', postgres: 'common8:* & rare1:*', sqlite: 'common8* AND rare1*' },
  { name: 'prefix', text: 'rare12', postgres: 'rare12:*', sqlite: 'rare12*' },
] as const;

async function fill(db: Database, size: number): Promise<void> {
  const isPostgres = db.dialect === 'postgres';
  const id = isPostgres ? `('${PREFIX}' || lpad(to_hex(n), 12, '0'))::uuid` : `'${PREFIX}' || printf('%012x', n)`;
  const owner = isPostgres
    ? `('${PREFIX}' || lpad(to_hex(n % ${OWNERS}), 12, 'f'))::uuid`
    : `'${PREFIX}' || substr('ffffffffffff', 1, 12 - length(printf('%x', n % ${OWNERS}))) || printf('%x', n % ${OWNERS})`;
  const words = Array.from({ length: 9 }, (_, index) => `'w' || ((n * ${7 + index * 2}) % ${1000 * (index + 1)})`).join(` || ' ' || `);
  const body = `'common' || (n % ${COMMON}) || ' rare' || (n % ${RARE}) || ' ' || ${words}`;
  const series = isPostgres
    ? `generate_series(1, ${size}) n`
    : `(with recursive c(n) as (select 1 union all select n + 1 from c where n < ${size}) select n from c)`;
  await db.query(`insert into pages (id, owner_id, title, body) select ${id}, ${owner}, 'page ' || n, ${body} from ${series}`);
  await db.query(isPostgres ? 'vacuum analyze pages' : 'analyze');
}

interface ByHand {
  query(search: (typeof SEARCHES)[number]): Promise<unknown[]>;
  close(): Promise<void>;
}

async function postgresByHand(url: string): Promise<ByHand> {
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  const text = `select id, owner_id, title, body from pages where owner_id = $1 and pages_title_body_search @@ to_tsquery('simple', $2) order by id desc limit 51`;
  return {
    query: async ({ postgres }) => (await pool.query(text, [OWNER, postgres])).rows.slice(0, 50),
    close: () => pool.end(),
  };
}

function sqliteByHand(path: string): ByHand {
  const db = new DatabaseSync(path);
  db.exec(`create virtual table hand using fts5(title, body, content='', tokenize='unicode61 remove_diacritics 2');
    insert into hand (rowid, title, body) select rowid, title, body from pages`);
  const statement = db.prepare(
    `select id, owner_id, title, body from pages where owner_id = ? and rowid in (select rowid from hand where hand match ?) order by id desc limit 51`,
  );
  return { query: async ({ sqlite }) => statement.all(OWNER, sqlite).slice(0, 50), close: async () => db.close() };
}

/** Milliseconds per call of each side: medians of interleaved rounds. */
async function timesOf(rounds: number, seconds: number, calls: readonly (() => Promise<unknown>)[]): Promise<number[]> {
  const times = calls.map((): number[] => []);
  for (const call of calls) await call();
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, call] of calls.entries()) {
      const start = performance.now();
      let count = 0;
      while (count === 0 || performance.now() - start < seconds * 1000) {
        await call();
        count += 1;
      }
      times[index]?.push((performance.now() - start) / count);
    }
  }
  return times.map((each) => each.sort((a, b) => a - b)[Math.floor(each.length / 2)] as number);
}

async function compare(context: BenchmarkContext, url: string, byHandOf: () => ByHand | Promise<ByHand>): Promise<Ratio[]> {
  const database = await openDatabase(url);
  const user = { id: OWNER, username: 'owner', email: null, is_active: true, is_staff: false, is_superuser: false };
  const app = createApp({
    database,
    log: { level: 'silent' },
    authenticators: [
      { name: 'name', securityScheme: { type: 'http', scheme: 'name' }, authenticate: () => ({ user, scheme: 'name', scopes: null }) },
    ],
    modules: [{ name: 'bench', models: [pages], migrations: [tables] }],
    mount: { '/v1': { '/pages': PageController } },
  });
  const bare = Fastify();
  let hand: ByHand | undefined;
  try {
    await migrateApp(app);
    await fill(database, context.quick ? SIZE_QUICK : SIZE);
    const byHand = (hand = await byHandOf());
    bare.get('/v1/pages', async ({ query }) => {
      const search = SEARCHES.find(({ text }) => text === (query as { search: string }).search) as (typeof SEARCHES)[number];
      return { items: await byHand.query(search) };
    });
    await app.ready();
    const [rounds, seconds] = context.quick ? [1, 0.2] : [5, 0.5];
    context.print(`\n${database.dialect}`);
    const ratios: Ratio[] = [];
    for (const search of SEARCHES) {
      const address = `/v1/pages?search=${encodeURIComponent(search.text)}`;
      const read = async (side: { inject(request: string): Promise<{ statusCode: number; body: string }> }) => {
        const { statusCode, body } = await side.inject(address);
        if (statusCode !== 200) throw new Error(`${search.name}: ${statusCode} ${body.slice(0, 300)}`);
        return (JSON.parse(body) as { items: { id: string }[] }).items.map(({ id }) => id).join();
      };
      if ((await read(app)) !== (await read(bare))) throw new Error(`${search.name}: the sides do not find the same pages`);
      const [kit = Number.NaN, own = Number.NaN] = await timesOf(rounds, seconds, [() => app.inject(address), () => bare.inject(address)]);
      context.print(`${search.name.padEnd(12)} kit ${kit.toFixed(2)} ms, by hand ${own.toFixed(2)} ms`);
      ratios.push({ name: `crud-search-${database.dialect}-${search.name.replace(' ', '-')}`, value: kit / own, goal: 3, atMost: true });
    }
    return ratios;
  } finally {
    await hand?.close();
    await bare.close();
    await app.close();
    await database.close();
  }
}

export default defineBenchmark({
  name: 'crud-search',
  question: 'Is a full-text search of generic CRUD among a million rows as fast as one written by hand?',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    const path = join(folder, 'bench.db');
    const server = await startPostgresServer({ durable: false });
    try {
      const postgres = await compare(context, server.url, () => postgresByHand(server.url));
      const sqlite = await compare(context, `sqlite:${path}`, () => sqliteByHand(path));
      return [...postgres, ...sqlite];
    } finally {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
