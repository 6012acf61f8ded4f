import type { BenchmarkContext } from './benchmark.ts';
import { cpuContest, type CpuContestResult } from './cpu-contest.ts';
import type { ServerProcess } from './server-process.ts';
import { requestRate, type LoadRequest } from './wrk.ts';

/** A server and what it is asked. */
export interface HttpContender {
  readonly name: string;
  readonly server: ServerProcess;
  readonly requests: readonly LoadRequest[];
}

const WARM_UP_SECONDS = 6;

/** Runs servers against each other under `wrk`. */
export async function httpContest(context: BenchmarkContext, contenders: readonly HttpContender[]): Promise<CpuContestResult> {
  // Until the compiler is done: its threads count as CPU time of the process, and the more code, the longer it takes.
  for (const { server, requests } of contenders) await requestRate(server.port, requests, WARM_UP_SECONDS);
  const loaded = contenders.map(({ name, server, requests }) => ({
    name,
    server,
    load: (seconds: number) => requestRate(server.port, requests, seconds),
  }));
  return cpuContest(context, loaded);
}
