// What do an audit entry and a webhook event add to a generic create? A validated, owner-scoped create with both, in its transaction,
// compared with the same create without them, with 1 and with 16 requests at a time, on both databases, by wall clock through the whole
// pipeline. The audit and webhook modules are the real ones, sealing included; PostgreSQL keeps its promises (durable commits).
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import type { App } from '../packages/kit/src/app/index.ts';
import { audit } from '../packages/kit/src/contrib/audit/index.ts';
import { webhooks } from '../packages/kit/src/contrib/webhooks/index.ts';
import { CrudController } from '../packages/kit/src/crud/index.ts';
import { createTable, migration, model, t, timestamps } from '../packages/kit/src/db/index.ts';
import { isAuthenticated } from '../packages/kit/src/permissions/index.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, ratioOf } from './harness/contest.ts';
import { startCrudApp } from './harness/crud-app.ts';
import { ratePerSecond } from './harness/loop.ts';
import type { Ratio } from './harness/ratio.ts';

const AT_A_TIME = [1, 16];
const columns = { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(80), body: t.text(400), ...timestamps() };
const plain = model('plain_notes', columns);
const recorded = model('recorded_notes', columns);
class PlainController extends CrudController(plain, { owner: 'owner_id', permission: isAuthenticated, audit: false }) {}
class RecordedController extends CrudController(recorded, { owner: 'owner_id', permission: isAuthenticated, events: true }) {}
const module = {
  name: 'notes',
  models: [plain, recorded],
  migrations: [migration('0001_initial', [createTable('plain_notes', columns), createTable('recorded_notes', columns)])],
};

async function measure(context: BenchmarkContext, app: App): Promise<Ratio[]> {
  const { dialect } = app.db;
  const contender = (name: string, url: string, atATime: number) => ({
    name,
    measure: (seconds: number) =>
      ratePerSecond(
        async () => {
          const { statusCode, body } = await app.inject({ method: 'POST', url, payload: { title: 'a note', body: 'x'.repeat(200) } });
          if (statusCode !== 201) throw new Error(`${name}: ${statusCode} ${body}`);
        },
        seconds,
        atATime,
      ),
  });
  const ratios: Ratio[] = [];
  for (const atATime of AT_A_TIME) {
    context.print(`\n${dialect}, ${atATime} at a time`);
    const result = await contest(context, [
      contender('create', '/v1/plain', atATime),
      contender('create with audit and event', '/v1/recorded', atATime),
    ]);
    ratios.push({
      name: `crud-audit-${dialect}-${atATime}`,
      value: ratioOf(result, 'create with audit and event', 'create'),
      goal: 0.5,
    });
  }
  const [entries] = await app.db.query<{ count: number | bigint }>(
    'select (select count(*) from audit_inbox) + (select count(*) from audit_entries) as count',
  );
  const [rows] = await app.db.query<{ count: number | bigint }>('select count(*) as count from recorded_notes');
  if (Number(entries?.count) < Number(rows?.count))
    throw new Error(`${String(rows?.count)} rows and ${String(entries?.count)} audit entries`);
  return ratios;
}

export default defineBenchmark({
  name: 'crud-audit',
  question: 'What is left of the rate of a generic create when it is audited and announced?',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    const server = await startPostgresServer({ durable: true });
    const ratios: Ratio[] = [];
    try {
      for (const database of [server.url, `sqlite:${join(folder, 'bench.db')}`]) {
        const app = await startCrudApp({
          database,
          modules: [module, audit(), webhooks({ secretKeys: [`${Buffer.alloc(32, 7).toString('base64url')}=`] })],
          mount: { '/v1': { '/plain': PlainController, '/recorded': RecordedController } },
        });
        try {
          ratios.push(...(await measure(context, app)));
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
