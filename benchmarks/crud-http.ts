// What does generic CRUD cost over the same API written by hand? Owner-scoped rows (100,000 orders of 100 owners), 16 connections: one row by
// its key, a page of 50 with two filters and a cursor, a page of 50 with a to-one and a to-many expansion (5 items each), a validated create
// and a validated change. By hand means Fastify with its own validation and the driver with prepared statements: `pg` by name, `node:sqlite`.
// Both sides check a credential and a scope, condition on the owner, page by keyset, count versions and send ETags of rows; the generic side
// also seals its cursors, tags its pages and looks for unknown parameters. Both run in one process and take turns; ratios are of its CPU time per
// request.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { alternatingCpu, type AlternatingCpu } from './harness/alternating.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { median } from './harness/contest.ts';
import type { Ratio } from './harness/ratio.ts';
import { table } from './harness/table.ts';
import { type Databases, type DataSize, postgresDatabases, sqliteDatabases } from './servers/crud/data.ts';
import { type Operation, operations, requestsOf } from './servers/crud/load.ts';

const SIZE: DataSize = { owners: 100, ordersPerOwner: 1000, itemsPerOrder: 5 };
const SIZE_QUICK: DataSize = { owners: 20, ordersPerOwner: 300, itemsPerOrder: 5 };

/** `walk` is stated: pages that nobody has asked for lately, so that their cursors are encrypted again. */
const GOALS: Readonly<Record<Operation, number>> = { retrieve: 0.7, list: 0.75, walk: 0, expand: 0.7, create: 0.7, patch: 0.7 };

/** Of each operation: what the compiler makes of a process differs. */
const STARTS = 3;

export default defineBenchmark({
  name: 'crud-http',
  question: 'CPU time per request of a generic CRUD controller against the same API written by hand, on both databases',
  async run(context) {
    const size = context.quick ? SIZE_QUICK : SIZE;
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    const server = await startPostgresServer();
    try {
      const sqlite = await compare(context, 'sqlite', await sqliteDatabases(folder, size), size);
      const postgres = await compare(context, 'postgres', await postgresDatabases(server.url, size), size);
      return [...sqlite, ...postgres];
    } finally {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});

async function compare(context: BenchmarkContext, dialect: string, databases: Databases, size: DataSize): Promise<Ratio[]> {
  const args = [await databases.copy('by_hand'), await databases.copy('kit')];
  const ratios: Ratio[] = [];
  const lines: string[][] = [];
  for (const operation of operations) {
    const measured: AlternatingCpu[] = [];
    for (let start = 0; start < (context.quick ? 1 : STARTS); start++)
      measured.push(
        await alternatingCpu({
          script: new URL('./servers/crud/both.ts', import.meta.url),
          args,
          requests: (port) => requestsOf(operation, port, size),
          warmUpSeconds: context.quick ? 2 : 5,
          seconds: context.quick ? 2 : 6,
        }),
      );
    const each = measured.map(({ first, second }) => first / second);
    const micros = (values: readonly number[]) => median(values).toFixed(1);
    lines.push([
      operation,
      micros(measured.map(({ second }) => second)),
      micros(measured.map(({ first }) => first)),
      each.map((ratio) => ratio.toFixed(2)).join(' '),
    ]);
    ratios.push({ name: `crud-${operation}-${dialect}`, value: median(each), goal: GOALS[operation] });
  }
  context.print(`\n${dialect}`);
  context.print(table(['operation', 'kit µs', 'by hand µs', 'ratio of each start'], lines));
  return ratios;
}
