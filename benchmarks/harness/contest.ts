import type { BenchmarkContext } from './benchmark.ts';
import { table } from './table.ts';
import { ownContenders } from './turns.ts';

/** One side of a comparison. `measure` returns a rate (more is better), as operations per second. */
export interface Contender {
  readonly name: string;
  measure(seconds: number): Promise<number>;
}

/** The rates of each contender, round by round, in the order given. */
export type ContestResult = ReadonlyMap<string, readonly number[]>;

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

/**
 * Runs the contenders interleaved, round after round, so that a noisy neighbour slows all of them alike, and
 * prints the medians with their spread. The first round warms up and is thrown away.
 */
export async function contest(context: BenchmarkContext, entered: readonly Contender[]): Promise<ContestResult> {
  const { turns } = context;
  const contenders = turns === undefined ? entered : ownContenders(entered);
  turns?.beginContest();
  const rates = new Map<string, number[]>(contenders.map((contender) => [contender.name, []]));
  for (let round = 0; round <= context.rounds; round++) {
    // Rotating who goes first takes away the advantage of a fixed place in the round.
    for (let turn = 0; turn < contenders.length; turn++) {
      const contender = contenders[(round + turn) % contenders.length];
      if (contender === undefined) continue;
      const seconds = round === 0 ? Math.min(1, context.roundSeconds) : context.roundSeconds;
      const rate = turns === undefined ? await contender.measure(seconds) : await turns.measure(contender, seconds);
      if (round > 0) rates.get(contender.name)?.push(rate);
    }
  }
  const medians = new Map(contenders.map(({ name }) => [name, median(rates.get(name) ?? [])]));
  const best = Math.max(...medians.values());
  context.print(
    table(
      ['contender', 'per second (median)', 'min', 'max', 'of the fastest'],
      contenders.map(({ name }) => {
        const all = rates.get(name) ?? [];
        const mid = medians.get(name) ?? 0;
        return [name, whole(mid), whole(Math.min(...all)), whole(Math.max(...all)), `${((mid / best) * 100).toFixed(0)} %`];
      }),
    ),
  );
  return rates;
}

/**
 * `subject` as a fraction of `peer`: the median over the rounds, each compared with its own round. A disk that is fast for one minute and slow for
 * the next changes both sides of a round; between medians over all rounds it leaves whatever it did to one side.
 */
export function ratioOf(result: ContestResult, subject: string, peer: string): number {
  const peerRates = result.get(peer) ?? [];
  return median((result.get(subject) ?? []).map((rate, round) => rate / (peerRates[round] ?? Number.NaN)));
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}
