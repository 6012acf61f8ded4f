import { startServer } from './server-process.ts';

export interface PairedCpuOptions {
  /** A server whose process listens twice: first without what is measured, then with it. */
  readonly script: URL;
  readonly args: readonly string[];
  /** Loads a port for so long; returns requests per second. */
  readonly load: (port: number, seconds: number) => Promise<number>;
  readonly turns: number;
  readonly warmUpSeconds: number;
}

/**
 * CPU time per request without a part, as a share of the time with it, of two applications in ONE process that take turns of a second. Two
 * processes of the same code differ by up to a third here, by what the compiler happened to inline: more than any part that is measured. Of each
 * side the lower quartile of its turns counts: what else the machine does only ever adds.
 */
export async function pairedCpu({ script, args, load, turns, warmUpSeconds }: PairedCpuOptions): Promise<number> {
  const server = await startServer(script, { args });
  try {
    const cost = async (port: number, seconds: number): Promise<number> => {
      const before = await server.cpuMicros();
      const rate = await load(port, seconds);
      return ((await server.cpuMicros()) - before) / (rate * seconds);
    };
    const [plain = 0, other = 0] = server.ports;
    for (let second = 0; second < warmUpSeconds; second++) for (const port of server.ports) await load(port, 1);
    const costs = new Map(server.ports.map((port): [number, number[]] => [port, []]));
    for (let turn = 0; turn < turns; turn++)
      // The one that was second goes first next time, so that neither has a fixed place.
      for (const port of turn % 2 === 0 ? [plain, other] : [other, plain]) costs.get(port)?.push(await cost(port, 1));
    return lowerQuartile(costs.get(plain) ?? []) / lowerQuartile(costs.get(other) ?? []);
  } finally {
    await server.stop();
  }
}

function lowerQuartile(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 4)] ?? Number.NaN;
}
