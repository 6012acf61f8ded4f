import { readFileSync } from 'node:fs';
import type { Contender } from './contest.ts';

/** What a process that takes turns tells the one that gives them. */
export type TurnMessage = { readonly wants: string } | { readonly contest: number; readonly contender: string; readonly cpuMicros: number };

/** A contest of two commits: each of them measures only when it is its turn, so that both see the same machine. */
export interface Turns {
  /** A benchmark may ask several questions: contenders of different contests are told apart. */
  beginContest(): void;
  /** Waits for the turn, measures, reports the CPU time per operation and returns the rate. */
  measure(contender: Contender, seconds: number): Promise<number>;
}

/** Processes whose CPU time is measured; when there are none, the contenders run in this process. */
const subjects = new Set<number>();

export function watchCpuOf(pid: number): void {
  subjects.add(pid);
}

export function forgetCpuOf(pid: number): void {
  subjects.delete(pid);
}

const TICKS_PER_SECOND = 100;

/** CPU time of everything under test so far, in microseconds. While one contender is measured, the others have nothing to do. */
function cpuMicros(): number {
  if (subjects.size === 0) {
    const { user, system } = process.cpuUsage();
    return user + system;
  }
  let ticks = 0;
  for (const pid of subjects) {
    // The name of the program, in parentheses, may have spaces: what follows it is counted.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ');
    ticks += Number(fields[11]) + Number(fields[12]);
  }
  return (ticks / TICKS_PER_SECOND) * 1_000_000;
}

/** Turns given by the parent process, over IPC. */
export function turnsOfParent(): Turns {
  let contest = 0;
  return {
    beginContest: () => void (contest += 1),
    async measure(contender, seconds) {
      const go = new Promise((resolve) => process.once('message', resolve));
      process.send?.({ wants: contender.name } satisfies TurnMessage);
      await go;
      const before = cpuMicros();
      const rate = await contender.measure(seconds);
      const used = cpuMicros() - before;
      // A contender that is not given a time does the same work in every round.
      const operations = contender.measure.length === 0 ? 1 : rate * seconds;
      process.send?.({ contest, contender: contender.name, cpuMicros: used / operations } satisfies TurnMessage);
      return rate;
    },
  };
}

/** Only what is ours can have changed between two commits; where no name says what is ours, everything is. */
export function ownContenders(contenders: readonly Contender[]): readonly Contender[] {
  const own = contenders.filter(({ name }) => /^(kit|config-server)\b/.test(name));
  return own.length === 0 ? contenders : own;
}
