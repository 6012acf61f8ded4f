// How long is it from the commit that starts a job to its handler? One job at a time on an idle worker, PostgreSQL; p50 and p99 of our
// worker against graphile-worker's, each woken by its notification.
import type Pg from 'pg';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { peerUrl } from './harness/peers.ts';
import { table } from './harness/table.ts';
import { kitQueue } from './queues/kit-queue.ts';
import { installQueues } from './queues/webhook-queues.ts';

interface Side {
  readonly name: string;
  /** Milliseconds from enqueueing to the handler. */
  once(): Promise<number>;
  stop(): Promise<unknown>;
}

async function kitSide(url: string): Promise<Side> {
  let started: () => void = () => undefined;
  const queue = await kitQueue({ url, concurrency: 10, handle: () => started() });
  const worker = await queue.work();
  return {
    name: 'kit',
    async once() {
      const reached = new Promise<void>((resolve) => (started = resolve));
      const at = performance.now();
      await queue.add(1);
      await reached;
      return performance.now() - at;
    },
    async stop() {
      await worker.stop();
      await queue.close();
    },
  };
}

async function graphileSide(url: string, folder: string): Promise<Side> {
  const { run, makeWorkerUtils, Logger } = (await import(peerUrl(folder, 'graphile-worker'))) as {
    run: (options: object) => Promise<{ stop(): Promise<void> }>;
    makeWorkerUtils: (
      options: object,
    ) => Promise<{ migrate(): Promise<void>; addJob(name: string, payload: object): Promise<unknown>; release(): Promise<void> }>;
    Logger: new (factory: () => () => void) => object;
  };
  const { default: pg } = (await import(peerUrl(folder, 'pg'))) as { default: typeof Pg };
  // A pool of our own: the one it makes keeps connections open after `release`, and their end would end this process.
  const pgPool = new pg.Pool({ connectionString: url });
  pgPool.on('error', () => undefined);
  pgPool.on('connect', (client) => client.on('error', () => undefined));
  const logger = new Logger(() => () => undefined);
  const tools = await makeWorkerUtils({ pgPool, logger });
  await tools.migrate();
  let started: () => void = () => undefined;
  const runner = await run({
    pgPool,
    taskList: { send: async () => started() },
    noHandleSignals: true,
    logger,
    concurrency: 10,
  });
  return {
    name: 'graphile-worker',
    async once() {
      const reached = new Promise<void>((resolve) => (started = resolve));
      const at = performance.now();
      await tools.addJob('send', {});
      await reached;
      return performance.now() - at;
    },
    async stop() {
      await runner.stop();
      await tools.release();
      await pgPool.end();
    },
  };
}

const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))] ?? Number.NaN;

async function run(context: BenchmarkContext) {
  const folder = installQueues((line) => context.print(line));
  const postgres = await startPostgresServer({ durable: true });
  const sides = [await kitSide(postgres.url), await graphileSide(postgres.url, folder)];
  const times = new Map<string, number[]>(sides.map(({ name }) => [name, []]));
  try {
    const runs = context.quick ? 200 : 2000;
    for (let n = 0; n < runs; n++)
      for (const side of sides) {
        const ms = await side.once();
        if (n >= runs / 10) times.get(side.name)?.push(ms);
      }
  } finally {
    for (const side of sides) await side.stop();
    await postgres.stop();
  }
  const at = (name: string, share: number): number => percentile(times.get(name) ?? [], share);
  context.print(
    table(
      ['contender', 'p50 ms', 'p99 ms'],
      sides.map(({ name }) => [name, at(name, 0.5).toFixed(2), at(name, 0.99).toFixed(2)]),
    ),
  );
  return [
    { name: 'jobs-latency-p50', value: at('kit', 0.5) / at('graphile-worker', 0.5), goal: 1, atMost: true },
    { name: 'jobs-latency-p99', value: at('kit', 0.99) / at('graphile-worker', 0.99), goal: 1, atMost: true },
  ];
}

export default defineBenchmark({ name: 'jobs-latency', question: 'How long is it from the commit that starts a job to its handler?', run });
