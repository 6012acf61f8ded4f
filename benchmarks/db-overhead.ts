// What does the model layer cost? One row by its key (ten columns: text, decimal, boolean, two timestamps, JSON, bigint),
// through find(db, model, key), next to the bare driver with the statement prepared beforehand, on both databases. The
// bare driver hands out what it reads; find() also turns it into Dates, booleans, bigints and JSON. Kysely without our
// templates is shown beside them. Rates are lookups per second of this process's CPU time: that is what limits a server,
// and it does not move with the load of the machine or of the database server.
import { kyselyOf, type Tables } from 'kit/kysely';
import { mkdtempSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { find, insertMany, model, openDatabase, t, tableStatements, timestamps, uuidv7, type Database } from 'kit/db';
import pg from 'pg';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, ratioOf, type Contender } from './harness/contest.ts';
import { ratePerSecond } from './harness/loop.ts';
import type { Ratio } from './harness/ratio.ts';

const orders = model('orders', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid(),
  title: t.text(200),
  total: t.decimal(12, 2),
  count: t.bigint(),
  is_paid: t.bool(),
  status: t.enum(['draft', 'paid']),
  data: t.json(),
  ...timestamps(),
});
type Shop = Tables<{ orders: typeof orders }>;

const ROWS = 5000;
const COLUMNS = Object.keys(orders.columns).map((name) => `"${name}"`);

async function fill(db: Database): Promise<string[]> {
  for (const statement of tableStatements(orders.table, db.dialect)) await db.query(statement);
  const rows = Array.from({ length: ROWS }, (_, index) => ({
    id: uuidv7(),
    owner_id: uuidv7(),
    title: `order ${index}`,
    total: '19.90',
    count: BigInt(index),
    is_paid: index % 2 === 0,
    status: 'draft' as const,
    data: { lines: [{ sku: 'a', quantity: 2 }] },
  }));
  await insertMany(db, orders, rows);
  return rows.map((row) => row.id);
}

/** Walks through the keys, so that no contender is served from one hot row. */
function lookups(
  ids: readonly string[],
  lookUp: (id: string) => Promise<unknown>,
  concurrency: number,
): (seconds: number) => Promise<number> {
  let next = 0;
  const lookUpNext = async (): Promise<void> => {
    const id = ids[next++ % ids.length] ?? '';
    if ((await lookUp(id)) === undefined) throw new Error(`no row ${id}`);
  };
  return async (seconds) => {
    const [done, before] = [next, process.cpuUsage()];
    await ratePerSecond(lookUpNext, seconds, concurrency);
    const { user, system } = process.cpuUsage(before);
    return ((next - done) / (user + system)) * 1e6;
  };
}

function ours(db: Database, ids: readonly string[], concurrency: number): Contender[] {
  const kysely = kyselyOf<Shop>(db);
  return [
    { name: 'kit', measure: lookups(ids, (id) => find(db, orders, id), concurrency) },
    {
      name: 'kysely, built each time',
      measure: lookups(ids, (id) => kysely.selectFrom('orders').selectAll().where('id', '=', id).executeTakeFirst(), concurrency),
    },
  ];
}

async function onSqlite(context: BenchmarkContext): Promise<Ratio> {
  const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
  const file = join(folder, 'bench.db');
  const db = await openDatabase(`sqlite:${file}`);
  const ids = await fill(db);
  const bare = new DatabaseSync(file, { readOnly: true });
  const statement = bare.prepare(`select ${COLUMNS.join(', ')} from orders where id = ?`);
  try {
    const result = await contest(context, [
      ...ours(db, ids, 1),
      { name: 'bare node:sqlite', measure: lookups(ids, async (id) => statement.get(id), 1) },
    ]);
    return { name: 'db-overhead-sqlite', value: ratioOf(result, 'kit', 'bare node:sqlite'), goal: 0.6 };
  } finally {
    bare.close();
    await db.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** As many lookups at once as there are connections: what a busy server does. */
const CONNECTIONS = 8;

async function onPostgres(context: BenchmarkContext): Promise<Ratio> {
  const server = await startPostgresServer();
  const db = await openDatabase(server.url, { poolMax: CONNECTIONS });
  const pool = new pg.Pool({ connectionString: server.url, max: CONNECTIONS }).on('error', () => undefined);
  try {
    const ids = await fill(db);
    const text = `select ${COLUMNS.join(', ')} from orders where id = $1`;
    const bare = async (id: string): Promise<unknown> => (await pool.query({ name: 'lookup', text, values: [id] })).rows[0] as unknown;
    const result = await contest(context, [...ours(db, ids, CONNECTIONS), { name: 'bare pg', measure: lookups(ids, bare, CONNECTIONS) }]);
    return { name: 'db-overhead-postgres', value: ratioOf(result, 'kit', 'bare pg'), goal: 0.6 };
  } finally {
    await db.close();
    await pool.end();
    await server.stop();
  }
}

export default defineBenchmark({
  name: 'db-overhead',
  question: 'What does a lookup through the model layer cost next to the bare driver with a prepared statement?',
  async run(context) {
    return [await onSqlite(context), await onPostgres(context)];
  },
});
