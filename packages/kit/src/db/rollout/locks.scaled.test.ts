import { createPostgresDatabase, type DatabasePlace } from 'kit/testing';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { scaled } from '../../../../../test/provision/scale.ts';
import { t } from '../declare/column.ts';
import type { Database, Db } from '../engine/db.ts';
import { migrate } from '../migrations/migrate.ts';
import { migration } from '../migrations/migration.ts';
import {
  addCheck,
  addColumn,
  alterColumn,
  createFullText,
  createIndex,
  createTable,
  dropCheck,
  dropColumn,
  dropIndex,
  dropTable,
  type Operation,
  renameColumn,
  renameTable,
} from '../migrations/operation.ts';
import { planMigrations } from '../migrations/plan.ts';
import { postgresStatements } from '../migrations/postgres-steps.ts';
import { applyOperation } from '../migrations/schema-state.ts';
import { openDatabase } from '../open/open-database.ts';
import { explainMigrations } from './explain-migrations.ts';
import { byTable, postgresImpact, type TableImpact } from './operation-impact.ts';

const ROWS = scaled(20_000, 5_000_000);

const initial = migration('0001_initial', [
  createTable('owners', { id: t.int().pk() }),
  createTable(
    'orders',
    {
      id: t.int().pk(),
      owner_id: t.ref('owners', { type: t.int() }).nullable(),
      other_id: t.int().nullable(),
      note: t.text(100),
      short: t.text(10).nullable(),
      state: t.enum(['open', 'done']),
      price: t.decimal(10, 2),
    },
    { indexes: [{ columns: ['other_id'] }], checks: { positive: 'id >= 0' } },
  ),
]);

const CHANGES: readonly (readonly [string, readonly Operation[]])[] = [
  ['a nullable column', addColumn('orders', 'a', t.text().nullable())],
  ['a column with a constant', addColumn('orders', 'a', t.int().dbDefault(7))],
  ['a column with the time', addColumn('orders', 'a', t.timestamp().dbDefault('now'))],
  ['a column with a random value', addColumn('orders', 'a', t.uuid().dbDefault('random'))],
  ['a column with values', addColumn('orders', 'a', t.enum(['x', 'y']).nullable())],
  ['a column with values and a default', addColumn('orders', 'a', t.enum(['x', 'y']).dbDefault('x'))],
  ['a column with a reference', addColumn('orders', 'a', t.ref('owners', { type: t.int() }).nullable())],
  ['a required column', addColumn('orders', 'a', t.text(), { backfill: `'x'` })],
  ['longer text', [alterColumn('orders', 'short', t.text(20).nullable())]],
  ['text of any length', [alterColumn('orders', 'short', t.text().nullable())]],
  ['shorter text', [alterColumn('orders', 'note', t.text(80))]],
  ['more digits', [alterColumn('orders', 'price', t.decimal(12, 2))]],
  ['more digits behind the point', [alterColumn('orders', 'price', t.decimal(12, 4))]],
  ['another type', [alterColumn('orders', 'other_id', t.bigint().nullable())]],
  ['another value', [alterColumn('orders', 'state', t.enum(['open', 'done', 'late']))]],
  ['a default', [alterColumn('orders', 'other_id', t.int().nullable().dbDefault(1))]],
  ['NULL allowed', [alterColumn('orders', 'note', t.text(100).nullable())]],
  ['NOT NULL', [alterColumn('orders', 'other_id', t.int())]],
  ['NOT NULL with values for old rows', [alterColumn('orders', 'short', t.text(10), { backfill: `'x'` })]],
  ['a reference', [alterColumn('orders', 'other_id', t.ref('owners', { type: t.int() }).nullable())]],
  ['an index', [createIndex('orders', { columns: ['note'] })]],
  ['an index that goes', [dropIndex('orders', 'orders_other_id_index')]],
  ['a check', [addCheck('orders', 'small', 'id < 2000000000')]],
  ['a check that goes', [dropCheck('orders', 'positive')]],
  ['a column that goes', [dropColumn('orders', 'note')]],
  ['a reference that goes', [dropColumn('orders', 'owner_id')]],
  ['a column with another name', [renameColumn('orders', 'short', 'brief')]],
  ['a table with another name', [renameTable('orders', 'sales')]],
  ['a table that goes', [dropTable('orders')]],
  ['a table that refers to it', [createTable('lines', { id: t.int().pk(), order_id: t.ref('orders', { type: t.int() }) })]],
  ['full text', [createFullText('orders', { columns: ['note'] })]],
];

let place: DatabasePlace;
let db: Database;
beforeAll(async () => {
  place = await createPostgresDatabase(inject('postgresUrl'));
  db = await openDatabase(place.url);
  await migrate(db, [{ name: 'shop', migrations: [initial] }]);
  await db.query('insert into owners (id) select n from generate_series(1, 1000) n');
  await db.transaction(async (tx) => {
    // Without the trigger of the reference, which runs for each row.
    await tx.query('set local session_replication_role = replica');
    await tx.query(
      `insert into orders (id, owner_id, other_id, note, state, price)
       select n, 1 + n % 1000, 1 + n % 1000, 'order number ' || n || ' of a table with rows', 'open', 1.50 from generate_series(1, $1::integer) n`,
      [ROWS],
    );
  });
  await db.query('vacuum analyze orders');
}, 1_800_000);
afterAll(async () => {
  await db.close();
  await place.remove();
});

const before = planMigrations([{ name: 'shop', migrations: [initial] }]).end;

const MODES: Readonly<Record<string, TableImpact['lock']>> = {
  AccessExclusiveLock: 'ACCESS EXCLUSIVE',
  ShareRowExclusiveLock: 'SHARE ROW EXCLUSIVE',
  ShareLock: 'SHARE',
  ShareUpdateExclusiveLock: 'SHARE UPDATE EXCLUSIVE',
};

interface Seen {
  readonly oid: string;
  readonly filenode: string;
  readonly indexes: number;
  readonly read: number;
  readonly updated: number;
}

const SEEN = `select c.oid::text as oid, c.relfilenode::text as filenode,
    (select count(*) from pg_index i where i.indrelid = c.oid)::integer as indexes,
    coalesce(pg_stat_get_xact_tuples_returned(c.oid), 0)::float8 as read, coalesce(pg_stat_get_xact_tuples_updated(c.oid), 0)::float8 as updated
  from pg_class c where c.oid::text = any($1)`;

class RolledBack extends Error {}

/** Runs the operations and looks at the locks, the files and the counters of the server before it rolls back. */
async function measured(operations: readonly Operation[]): Promise<{ readonly tables: readonly TableImpact[]; readonly tookMs: number }> {
  const found: TableImpact[] = [];
  let tookMs = 0;
  const run = db.transaction(async (tx) => {
    const oids = await tx.query<{ oid: string; name: string }>(
      `select c.oid::text as oid, relname as name from pg_class c where relname in ('orders', 'owners')`,
    );
    const earlier = await seen(tx, oids);
    const startedAt = performance.now();
    let state = before;
    for (const operation of operations) {
      if (operation.op === 'code') continue;
      for (const statement of postgresStatements(operation, state)) await tx.query(statement);
      state = applyOperation(state, operation);
    }
    tookMs = performance.now() - startedAt;
    const locks = await tx.query<{ oid: string; mode: string }>(
      `select relation::text as oid, mode from pg_locks where pid = pg_backend_pid() and locktype = 'relation'`,
    );
    const later = await seen(tx, oids);
    for (const { oid, name } of oids) {
      const modes = locks.filter((lock) => lock.oid === oid).flatMap(({ mode }) => MODES[mode] ?? []);
      const [was, is] = [earlier.get(oid), later.get(oid)];
      found.push(...modes.map((lock) => ({ table: name, lock, work: workOf(was, is) })));
    }
    throw new RolledBack();
  });
  await expect(run).rejects.toThrow(RolledBack);
  return { tables: byTable(found), tookMs };
}

async function seen(tx: Db, oids: readonly { readonly oid: string }[]): Promise<Map<string, Seen>> {
  const rows = await tx.query<Seen>(SEEN.replace('c.oid::regclass', 'c.oid::float8 as oid, c.oid::regclass'), [oids.map(({ oid }) => oid)]);
  return new Map(rows.map((row) => [row.oid, row]));
}

function workOf(was: Seen | undefined, is: Seen | undefined): TableImpact['work'] {
  if (was === undefined || is === undefined) return 'none';
  if (is.filenode !== was.filenode) return 'rewrite';
  if (is.updated - was.updated >= ROWS) return 'update';
  if (is.indexes > was.indexes) return 'index';
  // The parent of a reference is read by the check of its children.
  return is.read - was.read >= ROWS ? 'scan' : 'none';
}

/** Changes whose time is compared with the estimate: the others take no time, or as long as one of these. */
const SLOW: ReadonlySet<string> = new Set(['NOT NULL', 'an index', 'a required column', 'another type', 'full text', 'a check']);
const factors = new Map<string, number>();

/** What the plan says of the change, in milliseconds. */
async function estimated(operations: readonly Operation[]): Promise<number> {
  const shop = { name: 'shop', migrations: [initial, migration('0002_change', operations)] };
  const { migrations } = await explainMigrations(db, [shop]);
  return migrations[0]?.blocked.find(({ table }) => table === 'orders')?.ms ?? 0;
}

test.each(CHANGES)(
  'the locks and the work of a change are those that the plan says: %s',
  async (name, operations) => {
    // Right before it: the speed of the machine is that of the moment.
    const ms = SLOW.has(name) ? await estimated(operations) : 0;
    const { tables, tookMs } = await measured(operations);
    if (SLOW.has(name)) factors.set(name, ms / tookMs);
    let state = before;
    const planned: TableImpact[] = [];
    for (const operation of operations) {
      planned.push(...(postgresImpact(operation, state).tables ?? []));
      state = applyOperation(state, operation);
    }
    const byName = (a: TableImpact, b: TableImpact): number => (a.table < b.table ? -1 : 1);
    expect(byTable(planned).toSorted(byName)).toEqual(tables.toSorted(byName));
  },
  1_800_000,
);

test('the time that a change takes is estimated within a factor of ten', () => {
  expect(new Set(factors.keys())).toEqual(SLOW);
  if (ROWS >= 5_000_000) console.log(Object.fromEntries(factors));
  // A small table takes milliseconds, in which the machine does other things.
  const tolerated = ROWS >= 1_000_000 ? 10 : 100;
  for (const factor of factors.values()) {
    expect(factor).toBeLessThan(tolerated);
    expect(factor).toBeGreaterThan(1 / tolerated);
  }
});
