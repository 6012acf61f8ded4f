import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';

/** Beyond this share of stolen time a run says more about the neighbours of a virtual machine than about the code. */
const STOLEN_MAX = 0.05;

interface CpuTime {
  readonly total: number;
  readonly stolen: number;
}

/** CPU time of the machine so far, in ticks, and how much of it the host gave to others; nothing where the system does not tell. */
export function cpuTime(stat: string = existsSync('/proc/stat') ? readFileSync('/proc/stat', 'utf8') : ''): CpuTime {
  // user, nice, system, idle, iowait, irq, softirq, steal; the times of guests behind them are part of user and nice.
  const ticks = (/^cpu +(.*)/.exec(stat)?.[1] ?? '').split(' ').slice(0, 8).map(Number);
  return { total: ticks.reduce((sum, each) => sum + each, 0), stolen: ticks[7] ?? 0 };
}

export function stolenShare(before: CpuTime, after: CpuTime): number {
  return after.total === before.total ? 0 : (after.stolen - before.stolen) / (after.total - before.total);
}

/** Shares of CPU time that the host took: during a run, and while this machine did nothing but compute, before and after it. */
export interface StolenShares {
  readonly during: number;
  readonly before: number;
  readonly after: number;
}

/**
 * Whether neighbours disturbed a run. Time that is stolen only during the run is its own: a host may count its work for a virtual disk as stolen
 * (40 % while one process does nothing but write and fsync, 0 % while both cores compute).
 */
export function isDisturbed({ during, before, after }: StolenShares): boolean {
  return during > STOLEN_MAX && Math.max(before, after) > STOLEN_MAX;
}

const PROBE_SECONDS = 2;

/** The share that the host takes while every core computes and nothing is written. */
export async function stolenWhileComputing(seconds = PROBE_SECONDS): Promise<number> {
  const before = cpuTime();
  const spin = `const end = Date.now() + ${seconds * 1000}; while (Date.now() < end);`;
  await Promise.all(
    Array.from(
      { length: availableParallelism() },
      () =>
        new Promise((done, failed) => {
          new Worker(spin, { eval: true }).once('exit', done).once('error', failed);
        }),
    ),
  );
  return stolenShare(before, cpuTime());
}
