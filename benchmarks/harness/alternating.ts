import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serving, startServer, type Turn } from './server-process.ts';
import { requestRate, type LoadRequest } from './wrk.ts';

/** Long enough for hundreds of requests, short enough that whatever else the machine does falls on both sides. */
const SLICE_MS = 50;

interface Side {
  readonly server: Server;
  readonly turns: Turn[];
}

/**
 * Serves two applications, which listen already, on one more port of this process, in turns of 50 ms, and counts the CPU time per request of each
 * turn. Two processes of the same code differ by up to a third, by what the compiler happened to inline, and two ports of one process by what the
 * machine does in between: so measured, an application against itself read 0.83 to 1.11.
 */
export async function servingInTurns(first: Server, second: Server): Promise<void> {
  const sides: readonly [Side, Side] = [
    { server: first, turns: [] },
    { server: second, turns: [] },
  ];
  let side = sides[0];
  let requests = 0;
  let cpu = process.cpuUsage();
  let began = performance.now();
  let names = new Map<string, string>();
  const front = createServer((request, response) => {
    requests += 1;
    // Looked up for both sides, because it costs something.
    const name = names.get(request.url ?? '');
    if (name !== undefined && side === sides[0]) request.url = name;
    side.server.emit('request', request, response);
  });
  setInterval(() => {
    const { user, system } = process.cpuUsage(cpu);
    const now = performance.now();
    if (requests > 0) side.turns.push({ cpuMicros: (user + system) / requests, rate: (requests / (now - began)) * 1000 });
    requests = 0;
    side = side === sides[0] ? sides[1] : sides[0];
    began = now;
    cpu = process.cpuUsage();
  }, SLICE_MS).unref();
  await new Promise<void>((done) => front.listen(0, '127.0.0.1', done));
  serving([front, first, second].map(portOf), {
    slices: () => ({ first: sides[0].turns.splice(0), second: sides[1].turns.splice(0) }),
    rename: (renamed) => void (names = new Map(renamed)),
  });
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

export interface Alternation {
  /** Calls `servingInTurns`. */
  readonly script: URL;
  readonly args: readonly string[];
  /** What an application is asked; both get the same number of requests, whose paths may differ. */
  readonly requests: (port: number) => readonly LoadRequest[] | Promise<readonly LoadRequest[]>;
  readonly warmUpSeconds: number;
  /** Sent with the requests of one more warm-up, before the other: what is rare while it is measured is compiled by then, as it is in a server that runs. */
  readonly warmUpHeaders?: Readonly<Record<string, string>> | undefined;
  readonly seconds: number;
}

/** CPU time per request of two applications, in microseconds, and their requests per second. */
export interface AlternatingCpu {
  readonly first: number;
  readonly second: number;
  readonly rates: { readonly first: number; readonly second: number };
}

export async function alternatingCpu({
  script,
  args,
  requests,
  warmUpSeconds,
  warmUpHeaders,
  seconds,
}: Alternation): Promise<AlternatingCpu> {
  const server = await startServer(script, { args });
  try {
    const [front = 0, first = 0, second = 0] = server.ports;
    const [ofFirst, ofSecond] = [await requests(first), await requests(second)];
    server.rename(ofSecond.map(({ path }, index) => [path, ofFirst[index]?.path ?? path]));
    if (warmUpHeaders !== undefined)
      await requestRate(
        front,
        ofSecond.map((request) => ({ ...request, headers: { ...request.headers, ...warmUpHeaders } })),
        warmUpSeconds,
      );
    await requestRate(front, ofSecond, warmUpSeconds);
    await server.slices();
    await requestRate(front, ofSecond, seconds);
    const slices = await server.slices();
    const costs = (turns: readonly Turn[]): number => middle(turns.map(({ cpuMicros }) => cpuMicros));
    const rates = (turns: readonly Turn[]): number => middle(turns.map(({ rate }) => rate));
    return {
      first: costs(slices.first),
      second: costs(slices.second),
      rates: { first: rates(slices.first), second: rates(slices.second) },
    };
  } finally {
    await server.stop();
  }
}

/** The mean without the highest and the lowest tenth: collections of garbage count, what else the machine did for a moment does not. */
function middle(values: readonly number[]): number {
  const tenth = Math.floor(values.length / 10);
  const kept = values.toSorted((a, b) => a - b).slice(tenth, values.length - tenth);
  return kept.reduce((sum, value) => sum + value, 0) / kept.length;
}
