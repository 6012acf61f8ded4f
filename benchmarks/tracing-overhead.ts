// What do traces cost when none, one in a hundred or all requests are recorded, decided by tracing({ share }) or by the SDK's sampler, and what do
// metrics cost? The same GET by id and validated POST as in http-overhead, against the same application without them.
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { cpuContest } from './harness/cpu-contest.ts';
import { requestsPerSecond, type HttpLoad } from './harness/http-load.ts';
import type { Ratio } from './harness/ratio.ts';
import { startServer, type ServerProcess } from './harness/server-process.ts';
import { questions } from './servers/order-load.ts';

const OBSERVED = {
  'recording 0 %': '0',
  'recording 1 %': '0.01',
  'SDK samples 1 %': 'sdk:0.01',
  'recording 100 %': '1',
  metrics: 'metrics',
} as const;

export default defineBenchmark({
  name: 'tracing-overhead',
  question: 'CPU per request without traces, against recording none, 1 % and all of them, and against metrics',
  async run(context) {
    const servers = new Map<string, ServerProcess>();
    try {
      servers.set('plain', await startServer(new URL('./servers/http-kit.ts', import.meta.url)));
      for (const [name, mode] of Object.entries(OBSERVED))
        servers.set(name, await startServer(new URL('./servers/http-kit-observed.ts', import.meta.url), { args: [mode] }));
      const ratios: Ratio[] = [];
      for (const { name, load } of questions) ratios.push(...(await compare(context, name, servers, load)));
      return ratios;
    } finally {
      for (const server of servers.values()) await server.stop();
    }
  },
});

async function compare(
  context: BenchmarkContext,
  name: string,
  servers: ReadonlyMap<string, ServerProcess>,
  load: (port: number) => HttpLoad,
): Promise<Ratio[]> {
  context.print(`\n${name}`);
  const contenders = [...servers].map(([contender, server]) => ({
    name: contender,
    server,
    load: (seconds: number) => requestsPerSecond(load(server.port), seconds),
  }));
  // Six servers and two questions: shorter rounds than others have, CPU time is steady.
  const shorter = { ...context, rounds: Math.min(context.rounds, 5), roundSeconds: Math.min(context.roundSeconds, 3) };
  const { cpuRatio } = await cpuContest(shorter, contenders);
  const ratio = (contender: string) => cpuRatio(contender, 'plain');
  return [
    { name: `${name}-recording-0`, value: ratio('recording 0 %'), goal: 0.97 },
    { name: `${name}-recording-1`, value: ratio('recording 1 %'), goal: 0.97 },
    { name: `${name}-sdk-samples-1`, value: ratio('SDK samples 1 %'), goal: 0 },
    // What recording everything costs is stated, not promised.
    { name: `${name}-recording-100`, value: ratio('recording 100 %'), goal: 0 },
    { name: `${name}-metrics`, value: ratio('metrics'), goal: 0 },
  ];
}
