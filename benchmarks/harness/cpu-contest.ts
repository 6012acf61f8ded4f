import type { BenchmarkContext } from './benchmark.ts';
import { contest, median, type Contender, type ContestResult } from './contest.ts';
import type { ServerProcess } from './server-process.ts';

/** A server and how it is loaded. */
export interface CpuContender {
  readonly name: string;
  readonly server: Pick<ServerProcess, 'cpuMicros'>;
  /** Loads the server for so long; returns requests per second. */
  readonly load: (seconds: number) => Promise<number>;
}

export interface CpuContestResult {
  readonly rates: ContestResult;
  /** The median CPU time per request, in microseconds. Benchmarks of earlier commits read it when `--against` runs them on this harness. */
  readonly cpuMicros: ReadonlyMap<string, number>;
  /**
   * How much of the CPU time per request of `subject` its peer needs: 0.8 when the peer needs 20 % less. The median of the ratios within each
   * turn: a machine that is slower for half a minute slows both sides of a turn, but not both medians of a whole run alike.
   */
  readonly cpuRatio: (subject: string, peer: string) => number;
}

/** Short turns, so that both sides of a ratio see the same machine: with turns of 3 s, a server that does more came out 25 % cheaper. */
const TURN_SECONDS = 1;

/** Runs servers against each other, and prints their rates and their CPU time per request. */
export async function cpuContest(context: BenchmarkContext, contenders: readonly CpuContender[]): Promise<CpuContestResult> {
  const micros = new Map<string, number[]>(contenders.map(({ name }) => [name, []]));
  // Another commit, which --against runs too, may have longer turns: both take the ones of the context then.
  const shortTurns = { rounds: Math.ceil((context.rounds * context.roundSeconds) / TURN_SECONDS), roundSeconds: TURN_SECONDS };
  const rates = await contest(
    { ...context, ...(context.turns === undefined ? shortTurns : {}) },
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
  // The first turn warmed up.
  const turnsOf = (name: string) => micros.get(name)?.slice(1) ?? [];
  const each = contenders.map(({ name }) => `${name} ${median(turnsOf(name)).toFixed(1)} µs`);
  context.print(`CPU per request: ${each.join(', ')}`);
  return {
    rates,
    cpuMicros: new Map(contenders.map(({ name }) => [name, median(turnsOf(name))])),
    cpuRatio(subject, peer) {
      const theirs = turnsOf(peer);
      return median(turnsOf(subject).map((own, turn) => (theirs[turn] ?? Number.NaN) / own));
    },
  };
}
