import type { BenchmarkContext } from './benchmark.ts';
import { contest, median, type Contender, type ContestResult } from './contest.ts';
import type { ServerProcess } from './server-process.ts';

/** A server and how it is loaded. */
export interface CpuContender {
  readonly name: string;
  readonly server: ServerProcess;
  /** Loads the server for so long; returns requests per second. */
  readonly load: (seconds: number) => Promise<number>;
}

export interface CpuContestResult {
  readonly rates: ContestResult;
  /** CPU time of the server process per request, in microseconds: to be trusted on a noisy machine, or where something else is the limit. */
  readonly cpuMicros: ReadonlyMap<string, number>;
}

/** Runs servers against each other, and prints their rates and their CPU time per request. */
export async function cpuContest(context: BenchmarkContext, contenders: readonly CpuContender[]): Promise<CpuContestResult> {
  const micros = new Map<string, number[]>(contenders.map(({ name }) => [name, []]));
  const rates = await contest(
    context,
    contenders.map(({ name, server, load }): Contender => ({
      name,
      async measure(seconds) {
        const before = await server.cpuMicros();
        const rate = await load(seconds);
        micros.get(name)?.push(((await server.cpuMicros()) - before) / (rate * seconds));
        return rate;
      },
    })),
  );
  // The first round warmed up.
  const cpuMicros = new Map([...micros].map(([name, all]) => [name, median(all.slice(1))]));
  context.print(`CPU per request: ${[...cpuMicros].map(([name, each]) => `${name} ${each.toFixed(1)} µs`).join(', ')}`);
  return { rates, cpuMicros };
}
