import type { Ratio } from './ratio.ts';
import type { Turns } from './turns.ts';

/** What a benchmark is given: how long to measure and where to write. */
export interface BenchmarkContext {
  /** `--quick`: fewer and shorter rounds, to see that it runs; its ratios are no evidence. */
  readonly quick: boolean;
  /** How many interleaved rounds to run. */
  readonly rounds: number;
  /** How long one contender is measured per round, in seconds. */
  readonly roundSeconds: number;
  print(line: string): void;
  /** `--against`: this process measures only when it is its turn. */
  readonly turns?: Turns;
}

/** One question, stated in its first comment, answered as ratios within one run. */
export interface Benchmark {
  readonly name: string;
  readonly question: string;
  run(context: BenchmarkContext): Promise<Ratio[]>;
}

export function defineBenchmark(benchmark: Benchmark): Benchmark {
  return benchmark;
}
