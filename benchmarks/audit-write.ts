// What does an audit entry add to a business transaction? A transaction that inserts a row and records it, compared with one that inserts
// the same two rows into plain tables (a primary key, no chain, no other index), with 1 and with 16 connections, on both databases. The
// rate of the audited side includes the sealing of everything it recorded.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { auditMigrations } from '../packages/kit/src/contrib/audit/migrations/all.ts';
import { auditSink } from '../packages/kit/src/contrib/audit/record/record.ts';
import { sealEntries } from '../packages/kit/src/contrib/audit/chain/seal.ts';
import { Sealer, sealers } from '../packages/kit/src/contrib/audit/chain/sealer.ts';
import { verifyChain } from '../packages/kit/src/contrib/audit/chain/verify-chain.ts';
import { systemClock } from '../packages/kit/src/db/clock.ts';
import { createTable, json, migrate, migration, openDatabase, t, uuidv7, type Database, type Db } from '../packages/kit/src/db/index.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, ratioOf, type Contender } from './harness/contest.ts';
import type { Ratio } from './harness/ratio.ts';

const CONNECTIONS = [1, 16];
const PLAIN = 'two plain inserts';
const AUDITED = 'an insert and its audit entry';
const before = { status: 'draft', total: '19.90' };
const after = { status: 'paid', total: '19.90' };

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** What an audit entry says, without the hash and the chain. */
const entryColumns = {
  id: t.uuidv7().pk(),
  at: t.timestamp(),
  actor_id: t.text(64).nullable(),
  actor_name: t.text(255).nullable(),
  actor_scheme: t.text(64).nullable(),
  credential_id: t.text(64).nullable(),
  action: t.text(100),
  target_type: t.text(100),
  target_id: t.text(200),
  before: t.json().nullable(),
  after: t.json().nullable(),
  metadata: t.json().nullable(),
  request_id: t.text(200).nullable(),
};
const plain = migration('0001_initial', [
  createTable('business_rows', { id: t.uuidv7().pk(), status: t.text(20) }),
  createTable('plain_entries', entryColumns),
]);

const prepare = (db: Database) =>
  migrate(db, [
    { name: 'plain', migrations: [plain] },
    { name: 'audit', migrations: auditMigrations },
  ]);

const change = (tx: Db, id: string) => tx.query('insert into business_rows (id, status) values ($1, $2)', [id, 'paid']);

function plainly(db: Database): () => Promise<unknown> {
  const names = Object.keys(entryColumns);
  const text = `insert into plain_entries (${names.join(', ')}) values (${names.map((_, index) => `$${index + 1}`).join(', ')})`;
  return () =>
    db.transaction(async (tx) => {
      const id = uuidv7();
      await change(tx, id);
      const who = [null, 'ada', null, null];
      await tx.query(text, [uuidv7(), new Date(), ...who, 'order.paid', 'order', id, json(before), json(after), null, 'r1']);
    });
}

function audited(db: Database): () => Promise<unknown> {
  const sink = auditSink({ clock: systemClock, sensitive: () => new Set(), databases: ['default'] });
  return () =>
    db.transaction(async (tx) => {
      const id = uuidv7();
      await change(tx, id);
      await sink.record(tx, [{ actor: 'ada', action: 'order.paid', target_type: 'order', target_id: id, before, after, request_id: 'r1' }]);
    });
}

/** Of the plain rate, that of changes with an audit entry. */
const GOAL = 0.6;

/** Operations per second, the time for what follows them included. */
async function rate(operation: () => Promise<unknown>, seconds: number, connections: number, finish: () => Promise<unknown>) {
  const start = performance.now();
  const end = start + seconds * 1000;
  let done = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() < end) {
      await operation();
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  await finish();
  return (done / (performance.now() - start)) * 1000;
}

async function measure(context: BenchmarkContext, db: Database, connections: number): Promise<Ratio> {
  context.print(`\n${db.dialect}, ${connections} connection${connections === 1 ? '' : 's'}`);
  const contender = (name: string, operation: () => Promise<unknown>, finish: () => Promise<unknown>): Contender => ({
    name,
    measure: (seconds) => rate(operation, seconds, connections, finish),
  });
  const result = await contest(context, [
    contender(PLAIN, plainly(db), async () => undefined),
    contender(AUDITED, audited(db), () => sealEntries(db, { wait: true })),
  ]);
  return { name: `audit-write-${db.dialect}-${connections}`, value: ratioOf(result, AUDITED, PLAIN), goal: GOAL };
}

async function onDatabase(context: BenchmarkContext, db: Database): Promise<Ratio[]> {
  await prepare(db);
  const sealer = new Sealer(db, silent);
  sealers.bind(db, sealer);
  try {
    const ratios: Ratio[] = [];
    for (const connections of CONNECTIONS) ratios.push(await measure(context, db, connections));
    const report = await verifyChain(db);
    if (!report.ok) throw new Error(report.fault?.message);
    return ratios;
  } finally {
    await sealer.stop();
    sealers.release(db);
    await db.close();
  }
}

export default defineBenchmark({
  name: 'audit-write',
  question: 'What is left of the rate of two plain inserts when the second is an audit entry, with 1 and with 16 connections?',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    const server = await startPostgresServer({ durable: true });
    try {
      // One connection more than there are writers: the sealer's.
      const postgres = await onDatabase(context, await openDatabase(server.url, { poolMax: Math.max(...CONNECTIONS) + 1 }));
      const sqlite = await onDatabase(context, await openDatabase(`sqlite:${join(folder, 'bench.db')}`));
      return [...postgres, ...sqlite];
    } finally {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
