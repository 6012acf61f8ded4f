// What does an idempotency key cost? A generic create (validated, owner-scoped) with a new key in every request, compared with the same create
// where keys are not looked at, and the replay of a request that was done, compared with doing it. Over 16 HTTP connections, on both databases,
// PostgreSQL with durable commits. Both sides are controllers of one process that take turns of 50 ms and are sent the same bytes; the ratios with a
// goal are of the CPU time of the process per request, those of requests per second, where database and disk count, are printed beside them.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { alternatingCpu, type AlternatingCpu } from './harness/alternating.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { median } from './harness/contest.ts';
import type { Ratio } from './harness/ratio.ts';
import { table } from './harness/table.ts';
import { NEW_EACH_TIME } from './harness/wrk.ts';
import { NOTE } from './servers/notes/notes.ts';

/** What is compared: the first path with the second. */
const QUESTIONS = [
  { question: 'create', first: '/v1/plain', second: '/v1/keyed', goal: 0.3 },
  { question: 'replay', first: '/v1/keyed', second: '/v1/keyed', goal: 1.5 },
] as const;

/** Until the compiler is done with both sides. */
const WARM_UP_SECONDS = 8;
/** Of each question: what the compiler makes of a process differs. */
const STARTS = 5;

async function measure(context: BenchmarkContext, dialect: string, database: string): Promise<Ratio[]> {
  const ratios: Ratio[] = [];
  const lines: string[][] = [];
  for (const { question, first, second, goal } of QUESTIONS) {
    const measured: AlternatingCpu[] = [];
    for (let start = 0; start < (context.quick ? 1 : STARTS); start++) {
      const paths = [first, second];
      measured.push(
        await alternatingCpu({
          script: new URL('./servers/notes/keyed.ts', import.meta.url),
          args: [database, question],
          requests: async (port) => {
            const path = paths.shift() ?? second;
            const request = {
              method: 'POST',
              headers: { 'content-type': 'application/json', 'idempotency-key': NEW_EACH_TIME },
              body: NOTE,
            };
            // The first request with the known key is done, and all others are replays.
            await (await fetch(`http://127.0.0.1:${port}${path}`, request)).text();
            return [{ ...request, path }];
          },
          warmUpSeconds: context.quick ? 2 : WARM_UP_SECONDS,
          seconds: context.quick ? 2 : 6,
        }),
      );
    }
    const of = (each: (turns: AlternatingCpu) => number): string => median(measured.map(each)).toFixed(0);
    const ratiosOf = (each: (turns: AlternatingCpu) => number): string => measured.map((turns) => each(turns).toFixed(2)).join(' ');
    const ofCpu = ({ first: cpu, second: other }: AlternatingCpu): number => cpu / other;
    lines.push([
      question,
      of((turns) => turns.rates.first),
      of((turns) => turns.rates.second),
      ratiosOf(({ rates }) => rates.second / rates.first),
      ratiosOf(ofCpu),
    ]);
    ratios.push({ name: `idempotent-${question}-${dialect}`, value: median(measured.map(ofCpu)), goal });
  }
  context.print(`\n${dialect}, 16 connections: create against a create without a key, replay against a create with one`);
  context.print(table(['question', 'other per second', 'own per second', 'ratio of rates', 'ratio of CPU time'], lines));
  return ratios;
}

export default defineBenchmark({
  name: 'idempotency',
  question: 'What does a create with an idempotency key cost, against one without, and the replay of it?',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    const server = await startPostgresServer({ durable: true });
    try {
      const postgres = await measure(context, 'postgres', server.url);
      const sqlite = await measure(context, 'sqlite', `sqlite:${join(folder, 'bench.db')}`);
      return [...postgres, ...sqlite];
    } finally {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
