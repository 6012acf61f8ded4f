import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { passes, type Ratio } from './ratio.ts';

export const resultsFolder = join(import.meta.dirname, '..', 'results');

/** A full run as it is kept in `results/<name>.json`: what was measured, where, when and on which sources. */
export interface SavedRun {
  readonly name: string;
  readonly question: string;
  readonly date: string;
  readonly commit: string;
  /** Sources were changed since that commit. */
  readonly modified: boolean;
  readonly command: string;
  readonly machine: Machine;
  /** Processes that wanted a core, on average over the minute before the run: what else the machine was doing. */
  readonly loadBefore: number;
  readonly seconds: number;
  readonly ratios: readonly (Ratio & { readonly pass: boolean })[];
  /** What the benchmark printed: rates with their spread, CPU per operation, peers. */
  readonly output: readonly string[];
}

/** Enough to judge the numbers by, nothing that names the machine. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
  readonly node: string;
}

export function thisMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${process.arch}`,
    node: process.versions.node,
  };
}

export function loadOfTheLastMinute(): number {
  return Math.round((loadavg()[0] ?? 0) * 10) / 10;
}

/** The commit the sources are at, and whether they differ from it; saved results do not count as a difference. */
export function sourceState(folder: string): Pick<SavedRun, 'commit' | 'modified'> {
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim();
  const changed = git(
    'status',
    '--porcelain',
    '--untracked-files=no',
    '--',
    ':/',
    ':(exclude,top)benchmarks/results',
    ':(exclude,top)docs',
  );
  return { commit: git('rev-parse', 'HEAD'), modified: changed !== '' };
}

export function withVerdicts(ratios: readonly Ratio[]): SavedRun['ratios'] {
  return ratios.map((ratio) => Object.assign({}, ratio, { value: Number(ratio.value.toPrecision(4)), pass: passes(ratio) }));
}

export function saveRun(run: SavedRun, folder = resultsFolder): string {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${run.name}.json`);
  writeFileSync(file, `${JSON.stringify(run, null, 2)}\n`);
  return file;
}

/** Every saved run, by name. */
export function savedRuns(folder = resultsFolder): ReadonlyMap<string, SavedRun> {
  const files = readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .sort();
  return new Map(
    files.map((file) => {
      const run = JSON.parse(readFileSync(join(folder, file), 'utf8')) as SavedRun;
      return [run.name, run];
    }),
  );
}
