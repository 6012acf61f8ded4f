// What do traces cost when none, one in a hundred or all requests are recorded, decided by tracing({ sampleRatio }) or by the SDK's sampler, and what do
// metrics cost? Asked of the traffic of a generic controller on SQLite, in this process: rows by their key, pages of 50 and creates, as many of each.
// Then of the GET by id and the validated POST of http-overhead, which only look into a map: the same price is a larger share of them, and is stated,
// without a goal (docs/decisions/data.md, 023). Each against the same application without observers in the same process; `context` is
// Node's async context alone, which every tracer needs.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { alternatingCpu, type Alternation } from './harness/alternating.ts';
import { median } from './harness/contest.ts';
import type { HttpLoad } from './harness/http-load.ts';
import type { Ratio } from './harness/ratio.ts';
import { table } from './harness/table.ts';
import type { LoadRequest } from './harness/wrk.ts';
import { sqliteDatabases, type DataSize } from './servers/crud/data.ts';
import { requestsOf, type Operation } from './servers/crud/load.ts';
import { questions } from './servers/order-load.ts';

interface Observed {
  readonly name: string;
  readonly mode: string;
  readonly goal: number;
  /** The control and what has a goal are started more often: what the compiler makes of a process differs. */
  readonly starts: number;
  /** A request in a hundred is recorded by code that is compiled only after a minute of load. */
  readonly warmUpHeaders?: Readonly<Record<string, string>>;
}

const SHARE_KEPT = 0.9;
/** Until the compiler is done: after some 20,000 requests, of which a slow machine serves 800 a second with a database, and 15,000 without. */
const WARM_UP_SECONDS = { stored: 25, bare: 8 };
/** From a trusted proxy: the request is recorded, whatever the share. */
const RECORDED = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' };

const OBSERVED: readonly Observed[] = [
  // The same application twice: how far from 1 this is, is how far every other number may be off.
  { name: 'nothing', mode: 'plain', goal: 0, starts: 3 },
  { name: 'recording-0', mode: '0', goal: SHARE_KEPT, starts: 3 },
  { name: 'recording-1', mode: '0.01', goal: SHARE_KEPT, starts: 3, warmUpHeaders: RECORDED },
  // What recording everything costs is stated, not promised.
  { name: 'recording-100', mode: '1', goal: 0, starts: 1 },
  { name: 'metrics', mode: 'metrics', goal: 0, starts: 1 },
];

/** The async context alone is most of what a request pays here that is not recorded. */
const OBSERVED_BARE: readonly Observed[] = [
  ...OBSERVED.map((observed) => ({ ...observed, goal: 0 })),
  { name: 'context', mode: 'context', goal: 0, starts: 3 },
  { name: 'sdk-samples-1', mode: 'sdk:0.01', goal: 0, starts: 1 },
];

const SIZE: DataSize = { owners: 20, ordersPerOwner: 300, itemsPerOrder: 5 };
const STORED: readonly Operation[] = ['retrieve', 'list', 'create'];

/** One request of each operation after the other. */
async function traffic(port: number): Promise<LoadRequest[]> {
  const each = await Promise.all(STORED.map((operation) => requestsOf(operation, port, SIZE)));
  return Array.from({ length: Math.min(...each.map(({ length }) => length)) }, (_, index) =>
    each.map((requests) => requests[index] as LoadRequest),
  ).flat();
}

type Requests = Pick<Alternation, 'script' | 'requests' | 'warmUpSeconds'> & { readonly argsOf: (mode: string) => readonly string[] };

export default defineBenchmark({
  name: 'tracing-overhead',
  question: 'CPU per request without traces, against recording none, 1 % and all of them, and against metrics',
  async run(context) {
    const ratios: Ratio[] = [];
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    try {
      const databases = await sqliteDatabases(folder, SIZE);
      const files = [await databases.copy('plain'), await databases.copy('watched')];
      ratios.push(
        ...(await compare(context, 'crud', OBSERVED, {
          script: new URL('./servers/crud/observed.ts', import.meta.url),
          argsOf: (mode) => [mode, ...files],
          requests: traffic,
          warmUpSeconds: WARM_UP_SECONDS.stored,
        })),
      );
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    for (const { name, load } of questions)
      ratios.push(
        ...(await compare(context, name, OBSERVED_BARE, {
          script: new URL('./servers/http-kit-observed.ts', import.meta.url),
          argsOf: (mode) => [mode],
          requests: (port) => [wrkRequest(load(port))],
          warmUpSeconds: WARM_UP_SECONDS.bare,
        })),
      );
    return ratios;
  },
});

async function compare(context: BenchmarkContext, name: string, all: readonly Observed[], { argsOf, ...load }: Requests): Promise<Ratio[]> {
  const found = new Map<string, number[]>(all.map((observed) => [observed.name, []]));
  const most = Math.max(...all.map(({ starts }) => starts));
  for (let start = 0; start < (context.quick ? 1 : most); start++)
    for (const { name: observed, mode, starts, warmUpHeaders } of all) {
      if (start >= starts) continue;
      const { first, second } = await alternatingCpu({
        ...load,
        args: argsOf(mode),
        warmUpSeconds: context.quick ? 2 : load.warmUpSeconds,
        warmUpHeaders,
        seconds: context.quick ? 2 : 8,
      });
      found.get(observed)?.push(first / second);
    }
  context.print(`\n${name}, CPU per request of plain / observed`);
  context.print(
    table(
      ['observed by', 'median', 'each start'],
      [...found].map(([observed, values]) => [observed, median(values).toFixed(3), values.map((value) => value.toFixed(3)).join(' ')]),
    ),
  );
  return all.map(({ name: observed, goal }) => ({ name: `${name}-${observed}`, value: median(found.get(observed) ?? []), goal }));
}

function wrkRequest({ url, method = 'GET', headers = {}, body }: HttpLoad): LoadRequest {
  const { pathname, search } = new URL(url);
  return { method, path: `${pathname}${search}`, headers, ...(body === undefined ? {} : { body }) };
}
