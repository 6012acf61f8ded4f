// What do an audit entry and a webhook event add to a generic create? A validated, owner-scoped create with both, in its transaction, compared
// with the same create without them, over 1 and over 16 HTTP connections, on both databases, by wall clock. The audit and webhook modules are the
// real ones, sealing included; PostgreSQL keeps its promises (durable commits). One server has both resources. They are loaded in turns, and a
// turn begins when every audit entry of the turn before is sealed, so that the create without entries does not pay for the other's.
// On SQLite the same rows are written by hand too, without sealing: what is left of the rate there is what they cost anybody.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { openDatabase, type Database } from '../packages/kit/src/db/index.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, type Contender, median, ratioOf } from './harness/contest.ts';
import type { Ratio } from './harness/ratio.ts';
import { type ServerProcess, startServer } from './harness/server-process.ts';
import { requestRate, type LoadRequest } from './harness/wrk.ts';
import { NOTE } from './servers/notes/notes.ts';

const CONNECTIONS = [1, 16];
const PLAIN = 'create';
const RECORDED = 'create with audit and event';
const BY_HAND = 'by hand: ';
/** Rounds are compared within themselves: short ones, because the disk is now fast and now slow. Longer than sealing lags, which counts. */
const SHORT_TURNS = { rounds: 14, roundSeconds: 2 };
/** Of each side, until the compiler is done: after 15 seconds it still takes a twelfth of the machine. */
const WARM_UP_SECONDS = 20;

interface Servers {
  readonly kit: ServerProcess;
  readonly byHand: ServerProcess | undefined;
}

async function measure(context: BenchmarkContext, { kit, byHand }: Servers, database: Database): Promise<Ratio[]> {
  const create = (path: string): LoadRequest[] => [{ method: 'POST', path, headers: { 'content-type': 'application/json' }, body: NOTE }];
  for (const { port } of [kit, byHand].filter((server) => server !== undefined))
    for (const path of ['/v1/plain', '/v1/recorded']) await requestRate(port, create(path), context.quick ? 1 : WARM_UP_SECONDS);
  const ratios: Ratio[] = [];
  for (const connections of CONNECTIONS) {
    const waits: number[] = [];
    const contendersOf = (prefix: string, { port }: ServerProcess): Contender[] =>
      [
        { name: PLAIN, path: '/v1/plain' },
        { name: RECORDED, path: '/v1/recorded' },
      ].map(({ name, path }) => ({
        name: `${prefix}${name}`,
        async measure(seconds: number) {
          const rate = await requestRate(port, create(path), seconds, connections);
          waits.push(await untilSealed(database));
          return rate;
        },
      }));
    context.print(`\n${database.dialect}, ${connections} ${connections === 1 ? 'connection' : 'connections'}`);
    const result = await contest(context.quick ? context : { ...context, ...SHORT_TURNS }, [
      ...contendersOf('', kit),
      ...(byHand === undefined ? [] : contendersOf(BY_HAND, byHand)),
    ]);
    context.print(
      `every entry was sealed ${Math.max(...waits).toFixed(1)} s after the end of a turn, at most (median ${median(waits).toFixed(1)} s)`,
    );
    const name = `crud-audit-${database.dialect}-${connections}`;
    const left = ratioOf(result, RECORDED, PLAIN);
    ratios.push({ name, value: left, goal: 0.35 });
    if (byHand === undefined) continue;
    const leftByHand = ratioOf(result, `${BY_HAND}${RECORDED}`, `${BY_HAND}${PLAIN}`);
    context.print(`by hand ${leftByHand.toFixed(3)} of the rate is left`);
    ratios.push({ name: `${name}-as-by-hand`, value: left / leftByHand, goal: 0.9 });
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

const KIT = new URL('./servers/notes/recorded.ts', import.meta.url);

/** In tables of its own, which the toolkit makes. */
async function startByHand(url: string): Promise<ServerProcess> {
  await (await startServer(KIT, { args: [url] })).stop();
  return startServer(new URL('./servers/notes/by-hand.ts', import.meta.url), { args: [url] });
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
        const kit = await startServer(KIT, { args: [url] });
        const database = await openDatabase(url, { poolMax: 1 });
        const byHand = database.dialect === 'sqlite' ? await startByHand(`sqlite:${join(folder, 'by-hand.db')}`) : undefined;
        try {
          ratios.push(...(await measure(context, { kit, byHand }, database)));
        } finally {
          await database.close();
          await kit.stop();
          await byHand?.stop();
        }
      }
      return ratios;
    } finally {
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
