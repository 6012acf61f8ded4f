// What does a live list cost the writes of its resource? Creates and partial updates of two tables with the same columns, one of them with `live: true`, in one
// application, over 16 HTTP connections, in turns. Nobody follows the list: this is what every write pays, the row before it and a row of the change log.
// And deliveries of webhooks, and empty jobs, with and without the triggers of a live list. Jobs that do nothing are the worst case.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import type { DelivererOptions } from './deliverers/deliverer.ts';
import type { JobRunnerOptions } from './queues/job-runner.ts';
import { startContender } from './harness/contender-process.ts';
import { contest, ratioOf } from './harness/contest.ts';
import type { Ratio } from './harness/ratio.ts';
import { type ServerProcess, startServer } from './harness/server-process.ts';
import { type LoadRequest, NEW_EACH_TIME, requestRate } from './harness/wrk.ts';

const GOAL = 0.8;
/** Each empty job is two changes of its row, and nothing else. */
const JOBS_GOAL = 0.6;
const ROWS = 500;
const WARM_UP_SECONDS = 15;
/** Rounds are compared within themselves: short ones, because the disk is now fast and now slow. */
const SHORT_TURNS = { rounds: 14, roundSeconds: 2 };
const PATHS = { plain: '/v1/plain', live: '/v1/live', triggers: '/v1/triggers' } as const;
const headers = { 'content-type': 'application/json' };
const body = JSON.stringify({ room: 'hall', title: NEW_EACH_TIME, body: 'x'.repeat(200) });

async function updatesOf({ port }: ServerProcess, path: string): Promise<LoadRequest[]> {
  const requests: LoadRequest[] = [];
  for (let count = 0; count < ROWS; count += 1) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body });
    const { id } = (await response.json()) as { id: string };
    requests.push({ method: 'PATCH', path: `${path}/${id}`, headers, body: JSON.stringify({ title: NEW_EACH_TIME }) });
  }
  return requests;
}

async function compare(context: BenchmarkContext, dialect: string, url: string): Promise<Ratio[]> {
  const server = await startServer(new URL('./servers/live/cards.ts', import.meta.url), { args: [url] });
  const ratios: Ratio[] = [];
  try {
    const writes: Record<string, Record<keyof typeof PATHS, LoadRequest[]>> = {
      create: {
        plain: [{ method: 'POST', path: PATHS.plain, headers, body }],
        live: [{ method: 'POST', path: PATHS.live, headers, body }],
        triggers: [{ method: 'POST', path: PATHS.triggers, headers, body }],
      },
      update: {
        plain: await updatesOf(server, PATHS.plain),
        live: await updatesOf(server, PATHS.live),
        triggers: await updatesOf(server, PATHS.triggers),
      },
    };
    for (const [name, { plain, live, triggers }] of Object.entries(writes)) {
      for (const requests of [plain, live, triggers]) await requestRate(server.port, requests, context.quick ? 1 : WARM_UP_SECONDS);
      context.print(`\n${dialect}, ${name}`);
      const result = await contest(context.quick ? context : { ...context, ...SHORT_TURNS }, [
        { name: 'without', measure: (seconds) => requestRate(server.port, plain, seconds) },
        { name: 'with live: true', measure: (seconds) => requestRate(server.port, live, seconds) },
        { name: 'by triggers', measure: (seconds) => requestRate(server.port, triggers, seconds) },
      ]);
      ratios.push(
        { name: `live-cost-${name}-${dialect}`, value: ratioOf(result, 'with live: true', 'without'), goal: GOAL },
        { name: `live-cost-${name}-triggers-${dialect}`, value: ratioOf(result, 'by triggers', 'without'), goal: GOAL },
      );
    }
    return ratios;
  } finally {
    await server.stop();
  }
}

/** Deliveries of one worker, whose rows are written by SQL: the change log is written by triggers. */
async function compareDeliveries(context: BenchmarkContext): Promise<Ratio[]> {
  const postgres = await startPostgresServer({ durable: true });
  const receiver = await startServer(new URL('./receivers/webhook-receiver.ts', import.meta.url), { isUnderTest: false });
  const shared = { origin: `http://127.0.0.1:${receiver.port}`, postgresUrl: postgres.url, redisUrl: '', peers: '' };
  const load = { jobs: context.quick ? 2_000 : 30_000, endpoints: 20, concurrency: 100 };
  const started = [];
  try {
    for (const name of ['kit', 'kit, live'] as const) {
      const options: DelivererOptions = { ...shared, ...load, name };
      started.push(await startContender(name, new URL('./deliverers/deliverer.ts', import.meta.url), [JSON.stringify(options)]));
    }
    context.print('\npostgres, deliveries of webhooks');
    const result = await contest(
      context,
      started.map(({ contender }) => contender),
    );
    return [{ name: 'live-cost-deliveries-postgres', value: ratioOf(result, 'kit, live', 'kit'), goal: GOAL }];
  } finally {
    await Promise.all(started.map((process) => process.stop()));
    await receiver.stop();
    await postgres.stop();
  }
}

/** Empty jobs of one worker, whose rows are written by SQL, too. Each has a server of its own. */
async function compareJobs(context: BenchmarkContext): Promise<Ratio[]> {
  const servers = [];
  const started = [];
  try {
    for (const name of ['kit', 'kit, live'] as const) {
      const server = await startPostgresServer({ durable: true });
      servers.push(server);
      const load = { jobs: context.quick ? 2_000 : 30_000, concurrency: 100 };
      const options: JobRunnerOptions = { name, postgresUrl: server.url, redisUrl: '', peers: '', ...load };
      started.push(await startContender(name, new URL('./queues/job-runner.ts', import.meta.url), [JSON.stringify(options)]));
    }
    context.print('\npostgres, empty jobs');
    const result = await contest(
      context,
      started.map(({ contender }) => contender),
    );
    return [{ name: 'live-cost-jobs-postgres', value: ratioOf(result, 'kit, live', 'kit'), goal: JOBS_GOAL }];
  } finally {
    await Promise.all(started.map((process) => process.stop()));
    for (const server of servers) await server.stop();
  }
}

export default defineBenchmark({
  name: 'live-cost',
  question: 'What is left of the rate of creates and updates when their list is live?',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    const postgres = await startPostgresServer({ durable: true });
    try {
      return [
        ...(await compare(context, 'postgres', postgres.url)),
        ...(await compare(context, 'sqlite', `sqlite:${join(folder, 'cost.db')}`)),
        ...(await compareDeliveries(context)),
        ...(await compareJobs(context)),
      ];
    } finally {
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
