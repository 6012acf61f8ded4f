// What does generic CRUD cost over the same API written by hand? Owner-scoped rows (100,000 orders of 100 owners), 16 connections: one row by
// its key, a page of 50 with two filters and a cursor, a page of 50 with a to-one and a to-many expansion (5 items each), a validated create
// and a validated change. By hand means Fastify with its own validation and the driver with prepared statements: `pg` by name, `node:sqlite`.
// Both sides check a credential and a scope, condition on the owner, page by keyset, count versions and send ETags of rows; the generic side
// also seals its cursors, tags its pages and looks for unknown parameters. Ratios are of CPU time per request of the server process.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { httpContest } from './harness/http-contest.ts';
import type { Ratio } from './harness/ratio.ts';
import { startServer } from './harness/server-process.ts';
import { type Databases, type DataSize, postgresDatabases, sqliteDatabases } from './servers/crud/data.ts';
import { type Operation, operations, requestsOf } from './servers/crud/load.ts';

const SIZE: DataSize = { owners: 100, ordersPerOwner: 1000, itemsPerOrder: 5 };
const SIZE_QUICK: DataSize = { owners: 20, ordersPerOwner: 300, itemsPerOrder: 5 };

const GOALS: Readonly<Record<Operation, number>> = { retrieve: 0.85, list: 0.9, expand: 0.75, create: 0.85, patch: 0.85 };

/** Ten contests: short rounds, because CPU time per request settles soon. */
const ROUNDS = 4;
const ROUND_SECONDS = 1;

export default defineBenchmark({
  name: 'crud-http',
  question: 'CPU time per request of a generic CRUD controller against the same API written by hand, on both databases',
  async run(context) {
    const size = context.quick ? SIZE_QUICK : SIZE;
    const short = context.quick ? context : { ...context, rounds: ROUNDS, roundSeconds: ROUND_SECONDS };
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    const server = await startPostgresServer();
    try {
      const sqlite = await compare(short, 'sqlite', await sqliteDatabases(folder, size), size);
      const postgres = await compare(short, 'postgres', await postgresDatabases(server.url, size), size);
      return [...sqlite, ...postgres];
    } finally {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});

async function compare(context: BenchmarkContext, dialect: string, databases: Databases, size: DataSize): Promise<Ratio[]> {
  const start = async (name: 'kit' | 'bare') =>
    startServer(new URL(`./servers/crud/${name}.ts`, import.meta.url), { args: [await databases.copy(name)] });
  const kit = await start('kit');
  const bare = await start('bare');
  try {
    const ratios: Ratio[] = [];
    for (const operation of operations) {
      context.print(`\n${dialect}, ${operation}`);
      const { cpuRatio } = await httpContest(context, [
        { name: 'kit', server: kit, requests: await requestsOf(operation, kit.port, size) },
        { name: 'by hand', server: bare, requests: await requestsOf(operation, bare.port, size) },
      ]);
      ratios.push({ name: `crud-${operation}-${dialect}`, value: cpuRatio('kit', 'by hand'), goal: GOALS[operation] });
    }
    return ratios;
  } finally {
    await kit.stop();
    await bare.stop();
  }
}
