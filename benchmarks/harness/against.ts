import { fork, spawnSync, type ChildProcess } from 'node:child_process';
import { cpSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'; // prettier-ignore
import { dirname, join, relative, resolve } from 'node:path';
import { median } from './contest.ts';
import type { Ratio } from './ratio.ts';
import { table } from './table.ts';
import type { TurnMessage } from './turns.ts';

const root = join(import.meta.dirname, '..', '..');

/** "Not worse" than the commit before, as CPU time per operation. */
const CPU_MAX = 1.05;

type Side = 'before' | 'after';

/** CPU time per operation of one contender in one contest, round after round; the first round, which warms up, included. */
export interface Measured {
  readonly contender: string;
  readonly before: number[];
  readonly after: number[];
}

/** Who is next: the sides take turns, and the one that was second goes first in the next round, so that neither has a fixed place. */
export function sideOfTurn(turn: number): Side {
  return turn % 4 === 0 || turn % 4 === 3 ? 'before' : 'after';
}

/** The median over the rounds of what one operation costs now against what it cost then: both were measured one right after the other. */
export function costRatio({ before, after }: Measured): number {
  return median(after.slice(1).map((cost, round) => cost / (before[round + 1] ?? Number.NaN)));
}

/**
 * Runs a benchmark of another commit and of this tree in one run, in turns, and compares the CPU time per operation. Each commit runs its own
 * benchmark on its own packages; the harness is this tree's for both.
 */
export async function compareWith(commit: string, args: readonly string[], print: (line: string) => void): Promise<Ratio[]> {
  if (process.platform !== 'linux') throw new Error('--against reads CPU times from /proc, so it needs Linux.');
  const tree = checkOut(commit, print);
  const found = await takeTurns(join(tree, 'benchmarks', 'run.ts'), join(root, 'benchmarks', 'run.ts'), args);
  // A benchmark whose applications share one process gives no turns away.
  if (found.length === 0) throw new Error(`${args[0]} compares two applications within one process, so --against cannot run it.`);
  const rows = found.map((measured) => ({ measured, ratio: costRatio(measured) }));
  print(
    table(
      ['contender', `before (${commit})`, 'after', 'after / before'],
      rows.map(({ measured, ratio }) => [measured.contender, micros(measured.before), micros(measured.after), ratio.toFixed(3)]),
    ),
  );
  return rows.map(({ measured, ratio }) => ({
    name: `against-${args[0]}-${measured.contender.replaceAll(/\W+/g, '-')}`,
    value: ratio,
    goal: CPU_MAX,
    atMost: true,
  }));
}

const micros = (rounds: readonly number[]): string => `${median(rounds.slice(1)).toFixed(1)} µs`;

function git(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr.trim()}`);
  return stdout.trim();
}

/**
 * The other commit in a folder of its own, with its dependencies and this tree's harness. The folder stays, because installing takes a minute and
 * a commit is compared by more than one benchmark.
 */
function checkOut(commit: string, print: (line: string) => void): string {
  const peers = join(root, 'benchmarks', '.peers');
  const tree = join(peers, `commit-${git('rev-parse', '--short=12', `${commit}^{commit}`)}`);
  const complete = join(tree, 'node_modules', '.complete');
  if (!existsSync(complete)) {
    rmSync(tree, { recursive: true, force: true });
    mkdirSync(tree, { recursive: true });
    extract(commit, tree);
    installDependencies(tree, print);
    symlinkSync(peers, join(tree, 'benchmarks', '.peers'));
    writeFileSync(complete, '');
  }
  for (const part of ['harness', 'run.ts']) cpSync(join(root, 'benchmarks', part), join(tree, 'benchmarks', part), { recursive: true });
  return tree;
}

function extract(commit: string, tree: string): void {
  const archive = `${tree}.tar`;
  git('archive', '--output', archive, commit);
  const { status, stderr } = spawnSync('tar', ['-xf', archive, '-C', tree], { encoding: 'utf8' });
  rmSync(archive);
  if (status !== 0) throw new Error(`tar -xf ${archive}: ${stderr.trim()}`);
}

function installDependencies(tree: string, print: (line: string) => void): void {
  const lock = (folder: string): string => readFileSync(join(folder, 'package-lock.json'), 'utf8');
  if (lock(root) === lock(tree)) {
    linkModules(join(root, 'node_modules'), join(tree, 'node_modules'), tree);
    return;
  }
  print('the dependencies differ: installing those of the other commit');
  const { status, stderr } = spawnSync('npm', ['ci'], { cwd: tree, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm ci in ${tree}: ${stderr.slice(-800)}`);
}

/** Links what is installed here, but for the packages of the workspace: those are the other commit's. */
function linkModules(from: string, to: string, tree: string): void {
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) {
    const [source, target] = [join(from, name), join(to, name)];
    if (name.startsWith('@')) linkModules(source, target, tree);
    else if (!lstatSync(source).isSymbolicLink()) symlinkSync(source, target);
    else symlinkSync(join(tree, relative(root, resolve(dirname(source), readlinkSync(source)))), target);
  }
  for (const part of from === join(root, 'node_modules') ? ['packages', 'examples', 'benchmarks', 'docs/site'] : []) linkNested(part, tree);
}

/** Versions that only one package of the workspace has. */
function linkNested(part: string, tree: string): void {
  const folders = part === 'packages' || part === 'examples' ? readdirSync(join(root, part)).map((name) => join(part, name)) : [part];
  for (const folder of folders) {
    const modules = join(root, folder, 'node_modules');
    if (existsSync(modules) && existsSync(join(tree, folder))) symlinkSync(modules, join(tree, folder, 'node_modules'));
  }
}

const DIFFERENT = 'The two commits measure different things: compare with a commit whose benchmark has the same contenders.';

/** Runs both until they end. A side measures only in its turn; the other one waits for its own. */
async function takeTurns(before: string, after: string, args: readonly string[]): Promise<Measured[]> {
  const start = (script: string): ChildProcess =>
    fork(script, [...args, '--take-turns'], { cwd: dirname(script), execArgv: ['--conditions=source', '--expose-gc'], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] }); // prettier-ignore
  const sides: Record<Side, ChildProcess> = { before: start(before), after: start(after) };
  const found = new Map<string, { contender: string; before: number[]; after: number[] }>();
  const waiting = new Set<Side>();
  const ended = new Set<Side>();
  let turn = 0;
  const next = (): void => {
    const side = sideOfTurn(turn);
    // Both must be ready: one that prepares its database would be the other's noisy neighbour.
    if (waiting.size < 2 && turn % 2 === 0) return;
    if (!waiting.delete(side)) return;
    turn += 1;
    sides[side].send('go');
  };
  const ends = (['before', 'after'] as const).map(
    (side) =>
      new Promise<void>((done, failed) => {
        sides[side].once('error', failed);
        sides[side].once('exit', (code, signal) => {
          ended.add(side);
          if (code === 0 && waiting.size === 0) done();
          else failed(new Error(code === 0 ? DIFFERENT : `the benchmark of the commit ${side} ended with ${code ?? signal}`));
        });
        sides[side].on('message', (message: TurnMessage) => {
          if ('wants' in message) {
            if (ended.size > 0) failed(new Error(DIFFERENT));
            waiting.add(side);
          } else {
            const contender = `${message.contest} ${message.contender}`;
            const entry = found.get(contender) ?? { contender, before: [], after: [] };
            entry[side].push(message.cpuMicros);
            found.set(contender, entry);
          }
          next();
        });
      }),
  );
  try {
    await Promise.all(ends);
  } finally {
    for (const child of Object.values(sides)) child.kill('SIGTERM');
  }
  return [...found.values()];
}
