// What does the request log cost? CPU per request of the traffic of a generic controller on SQLite, in this process: rows by their key, pages of 50 and
// creates, as many of each. Every request leaves a row, written in batches by the same thread, and is counted in the usage. Against the same application
// without the log in the same process, in turns.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { alternatingCpu } from './harness/alternating.ts';
import { defineBenchmark } from './harness/benchmark.ts';
import { median } from './harness/contest.ts';
import type { Ratio } from './harness/ratio.ts';
import { table } from './harness/table.ts';
import type { LoadRequest } from './harness/wrk.ts';
import { sqliteDatabases, type DataSize } from './servers/crud/data.ts';
import { requestsOf, type Operation } from './servers/crud/load.ts';

const SHARE_KEPT = 0.95;
const SIZE: DataSize = { owners: 20, ordersPerOwner: 300, itemsPerOrder: 5 };
const OPERATIONS: readonly Operation[] = ['retrieve', 'list', 'create'];
/** Until the compiler is done. */
const WARM_UP_SECONDS = 25;

/** The control first: the same application twice. How far it is from 1 is how far the other may be off. */
const OBSERVED = [
  { name: 'nothing', mode: 'plain', goal: 0 },
  { name: 'request-log', mode: 'requests', goal: SHARE_KEPT },
] as const;

async function traffic(port: number): Promise<LoadRequest[]> {
  const each = await Promise.all(OPERATIONS.map((operation) => requestsOf(operation, port, SIZE)));
  return Array.from({ length: Math.min(...each.map(({ length }) => length)) }, (_, index) =>
    each.map((requests) => requests[index] as LoadRequest),
  ).flat();
}

export default defineBenchmark({
  name: 'request-log',
  question: 'CPU per request without the request log, against a row and a count of every request',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    const found = new Map<string, number[]>(OBSERVED.map(({ name }) => [name, []]));
    try {
      const databases = await sqliteDatabases(folder, SIZE);
      const files = [await databases.copy('plain'), await databases.copy('watched')];
      for (let start = 0; start < (context.quick ? 1 : 3); start++)
        for (const { name, mode } of OBSERVED) {
          const { first, second } = await alternatingCpu({
            script: new URL('./servers/crud/observed.ts', import.meta.url),
            args: [mode, ...files],
            requests: traffic,
            warmUpSeconds: context.quick ? 2 : WARM_UP_SECONDS,
            seconds: context.quick ? 2 : 8,
          });
          found.get(name)?.push(first / second);
        }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    context.print('\nCPU per request of plain / observed');
    context.print(
      table(
        ['observed by', 'median', 'each start'],
        [...found].map(([name, values]) => [name, median(values).toFixed(3), values.map((value) => value.toFixed(3)).join(' ')]),
      ),
    );
    return OBSERVED.map(({ name, goal }): Ratio => ({ name, value: median(found.get(name) ?? []), goal }));
  },
});
