// What do an audit entry and a webhook event add to a generic create? A validated, owner-scoped create with both, in its transaction, compared
// with the same create without them, over 1 and over 16 HTTP connections, on both databases, by wall clock. The audit and webhook modules are the
// real ones, sealing included; PostgreSQL keeps its promises (durable commits). One server has both resources. They are loaded in turns, and a
// turn begins when every audit entry of the turn before is sealed, so that the create without entries does not pay for the other's.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { openDatabase, type Database } from '../packages/kit/src/db/index.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, median, ratioOf } from './harness/contest.ts';
import type { Ratio } from './harness/ratio.ts';
import { startServer } from './harness/server-process.ts';
import { requestRate, type LoadRequest } from './harness/wrk.ts';
import { NOTE } from './servers/notes/notes.ts';

const CONNECTIONS = [1, 16];
const PLAIN = 'create';
const RECORDED = 'create with audit and event';
/** Rounds are compared within themselves: short ones, because the disk is now fast and now slow. Longer than sealing lags, which counts. */
const SHORT_TURNS = { rounds: 14, roundSeconds: 2 };
/** Of each side, until the compiler is done: after 15 seconds it still takes a twelfth of the machine. */
const WARM_UP_SECONDS = 20;

async function measure(context: BenchmarkContext, port: number, database: Database): Promise<Ratio[]> {
  const create = (path: string): LoadRequest[] => [{ method: 'POST', path, headers: { 'content-type': 'application/json' }, body: NOTE }];
  for (const path of ['/v1/plain', '/v1/recorded']) await requestRate(port, create(path), context.quick ? 1 : WARM_UP_SECONDS);
  const ratios: Ratio[] = [];
  for (const connections of CONNECTIONS) {
    const waits: number[] = [];
    const contender = (name: string, path: string) => ({
      name,
      async measure(seconds: number) {
        const rate = await requestRate(port, create(path), seconds, connections);
        waits.push(await untilSealed(database));
        return rate;
      },
    });
    context.print(`\n${database.dialect}, ${connections} ${connections === 1 ? 'connection' : 'connections'}`);
    const result = await contest(context.quick ? context : { ...context, ...SHORT_TURNS }, [
      contender(PLAIN, '/v1/plain'),
      contender(RECORDED, '/v1/recorded'),
    ]);
    context.print(
      `every entry was sealed ${Math.max(...waits).toFixed(1)} s after the end of a turn, at most (median ${median(waits).toFixed(1)} s)`,
    );
    ratios.push({ name: `crud-audit-${database.dialect}-${connections}`, value: ratioOf(result, RECORDED, PLAIN), goal: 0.5 });
  }
  await requireEverything(database);
  return ratios;
}

const POLL_MS = 50;

/** Waits until every audit entry is in the chain. Returns the seconds it took. */
async function untilSealed(database: Database): Promise<number> {
  const began = performance.now();
  for (;;) {
    const [waiting] = await database.query('select 1 as one from audit_inbox limit 1');
    if (waiting === undefined) return (performance.now() - began) / 1000;
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
}

/** A benchmark of creates that are not recorded would measure nothing. */
async function requireEverything(database: Database): Promise<void> {
  const [counts] = await database.query<Record<'rows' | 'entries' | 'events', number | bigint>>(
    `select (select count(*) from notes) as rows, (select count(*) from audit_entries where action like '%.created') as entries,
     (select count(*) from webhook_events) as events`,
  );
  const { rows, entries, events } = counts as NonNullable<typeof counts>;
  if (Number(rows) !== Number(entries) || Number(rows) !== Number(events))
    throw new Error(`${String(rows)} rows, ${String(entries)} audit entries and ${String(events)} events`);
}

export default defineBenchmark({
  name: 'crud-audit',
  question: 'What is left of the rate of a generic create when it is audited and announced?',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    const postgres = await startPostgresServer({ durable: true });
    const ratios: Ratio[] = [];
    try {
      for (const url of [postgres.url, `sqlite:${join(folder, 'bench.db')}`]) {
        const server = await startServer(new URL('./servers/notes/recorded.ts', import.meta.url), { args: [url] });
        const database = await openDatabase(url, { poolMax: 1 });
        try {
          ratios.push(...(await measure(context, server.port, database)));
        } finally {
          await database.close();
          await server.stop();
        }
      }
      return ratios;
    } finally {
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
