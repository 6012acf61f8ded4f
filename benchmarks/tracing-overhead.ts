// What do traces cost when none, one in a hundred or all requests are recorded, decided by tracing({ share }) or by the SDK's sampler, and what do
// metrics cost? The same GET by id and validated POST as in http-overhead, against the same application without them in the same process.
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { alternatingCpu } from './harness/alternating.ts';
import { median } from './harness/contest.ts';
import type { HttpLoad } from './harness/http-load.ts';
import type { Ratio } from './harness/ratio.ts';
import { table } from './harness/table.ts';
import type { LoadRequest } from './harness/wrk.ts';
import { questions } from './servers/order-load.ts';

interface Observed {
  readonly name: string;
  readonly mode: string;
  readonly goal: number;
  /** The control and what has a goal are started more often: what the compiler makes of a process differs. */
  readonly starts: number;
}

const OBSERVED: readonly Observed[] = [
  // The same application twice: how far from 1 this is, is how far every other number may be off.
  { name: 'nothing', mode: 'plain', goal: 0, starts: 3 },
  { name: 'recording-0', mode: '0', goal: 0.97, starts: 3 },
  { name: 'recording-1', mode: '0.01', goal: 0.97, starts: 3 },
  { name: 'sdk-samples-1', mode: 'sdk:0.01', goal: 0, starts: 1 },
  // What recording everything costs is stated, not promised.
  { name: 'recording-100', mode: '1', goal: 0, starts: 1 },
  { name: 'metrics', mode: 'metrics', goal: 0, starts: 1 },
];

export default defineBenchmark({
  name: 'tracing-overhead',
  question: 'CPU per request without traces, against recording none, 1 % and all of them, and against metrics',
  async run(context) {
    const ratios: Ratio[] = [];
    for (const question of questions) ratios.push(...(await compare(context, question)));
    return ratios;
  },
});

async function compare(context: BenchmarkContext, { name, load }: (typeof questions)[number]): Promise<Ratio[]> {
  const found = new Map<string, number[]>(OBSERVED.map((observed) => [observed.name, []]));
  const most = Math.max(...OBSERVED.map(({ starts }) => starts));
  for (let start = 0; start < (context.quick ? 1 : most); start++)
    for (const { name: observed, mode, starts } of OBSERVED) {
      if (start >= starts) continue;
      const { first, second } = await alternatingCpu({
        script: new URL('./servers/http-kit-observed.ts', import.meta.url),
        args: [mode],
        requests: (port) => [wrkRequest(load(port))],
        warmUpSeconds: context.quick ? 2 : 6,
        seconds: context.quick ? 2 : 12,
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
  return OBSERVED.map(({ name: observed, goal }) => ({ name: `${name}-${observed}`, value: median(found.get(observed) ?? []), goal }));
}

function wrkRequest({ url, method = 'GET', headers = {}, body }: HttpLoad): LoadRequest {
  const { pathname, search } = new URL(url);
  return { method, path: `${pathname}${search}`, headers, ...(body === undefined ? {} : { body }) };
}
