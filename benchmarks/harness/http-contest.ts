import type { BenchmarkContext } from './benchmark.ts';
import { contest, median, type Contender, type ContestResult } from './contest.ts';
import type { ServerProcess } from './server-process.ts';
import { requestRate, type LoadRequest } from './wrk.ts';

/** A server and what it is asked. */
export interface HttpContender {
  readonly name: string;
  readonly server: ServerProcess;
  readonly requests: readonly LoadRequest[];
}

export interface HttpContestResult {
  readonly rates: ContestResult;
  /** CPU time of the server process per request, in microseconds: to be trusted on a noisy machine, or where the database is the limit. */
  readonly cpuMicros: ReadonlyMap<string, number>;
}

const WARM_UP_SECONDS = 3;

/** Runs servers against each other under `wrk`, and prints their rates and their CPU time per request. */
export async function httpContest(context: BenchmarkContext, contenders: readonly HttpContender[]): Promise<HttpContestResult> {
  // Until the compiler is done: its threads count as CPU time of the process, and the more code, the longer it takes.
  for (const { server, requests } of contenders) await requestRate(server.port, requests, WARM_UP_SECONDS);
  const micros = new Map<string, number[]>(contenders.map(({ name }) => [name, []]));
  const rates = await contest(
    context,
    contenders.map(({ name, server, requests }): Contender => ({
      name,
      async measure(seconds) {
        const before = await server.cpuMicros();
        const rate = await requestRate(server.port, requests, seconds);
        micros.get(name)?.push(((await server.cpuMicros()) - before) / (rate * seconds));
        return rate;
      },
    })),
  );
  // The first round warmed up.
  const cpuMicros = new Map([...micros].map(([name, all]) => [name, median(all.slice(1))]));
  context.print(`CPU per request: ${[...cpuMicros].map(([name, each]) => `${name} ${each.toFixed(0)} µs`).join(', ')}`);
  return { rates, cpuMicros };
}
