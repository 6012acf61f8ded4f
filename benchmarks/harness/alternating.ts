import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serving, startServer } from './server-process.ts';
import { requestRate, type LoadRequest } from './wrk.ts';

/** Long enough for hundreds of requests, short enough that whatever else the machine does falls on both sides. */
const SLICE_MS = 50;

interface Side {
  readonly server: Server;
  readonly costs: number[];
}

/**
 * Serves two applications, which listen already, on one more port of this process, in turns of 50 ms, and counts the CPU time per request of each
 * turn. Two processes of the same code differ by up to a third, by what the compiler happened to inline, and two ports of one process by what the
 * machine does in between: so measured, an application against itself read 0.83 to 1.11.
 */
export async function servingInTurns(first: Server, second: Server): Promise<void> {
  const sides: readonly [Side, Side] = [
    { server: first, costs: [] },
    { server: second, costs: [] },
  ];
  let side = sides[0];
  let requests = 0;
  let cpu = process.cpuUsage();
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
    if (requests > 0) side.costs.push((user + system) / requests);
    requests = 0;
    side = side === sides[0] ? sides[1] : sides[0];
    cpu = process.cpuUsage();
  }, SLICE_MS).unref();
  await new Promise<void>((done) => front.listen(0, '127.0.0.1', done));
  serving([front, first, second].map(portOf), {
    slices: () => ({ first: sides[0].costs.splice(0), second: sides[1].costs.splice(0) }),
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
  readonly seconds: number;
}

/** CPU time per request of two applications, in microseconds. */
export interface AlternatingCpu {
  readonly first: number;
  readonly second: number;
}

export async function alternatingCpu({ script, args, requests, warmUpSeconds, seconds }: Alternation): Promise<AlternatingCpu> {
  const server = await startServer(script, { args });
  try {
    const [front = 0, first = 0, second = 0] = server.ports;
    const [ofFirst, ofSecond] = [await requests(first), await requests(second)];
    server.rename(ofSecond.map(({ path }, index) => [path, ofFirst[index]?.path ?? path]));
    await requestRate(front, ofSecond, warmUpSeconds);
    await server.slices();
    await requestRate(front, ofSecond, seconds);
    const slices = await server.slices();
    return { first: middle(slices.first), second: middle(slices.second) };
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
