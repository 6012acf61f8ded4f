import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { compareWith } from './harness/against.ts';
import type { Benchmark, BenchmarkContext } from './harness/benchmark.ts';
import { cpuTime, isDisturbed, stolenShare, stolenWhileComputing } from './harness/disturbance.ts';
import { passes, ratioLine } from './harness/ratio.ts';
import { loadOfTheLastMinute, saveRun, sourceState, thisMachine, withVerdicts } from './harness/saved-run.ts';
import { turnsOfParent } from './harness/turns.ts';

const folder = import.meta.dirname;

/** A benchmark is a file of this folder with a default export; its name is the file's. */
async function load(): Promise<Benchmark[]> {
  const files = readdirSync(folder).filter((file) => file.endsWith('.ts') && file !== 'run.ts' && !file.endsWith('.test.ts'));
  const modules = await Promise.all(
    files.sort().map((file) => import(pathToFileURL(join(folder, file)).href) as Promise<{ default: Benchmark }>),
  );
  return modules.map((module) => module.default);
}

const args = process.argv.slice(2);
const quick = args.includes('--quick');
const save = args.includes('--save');
const isTakingTurns = args.includes('--take-turns');
const againstAt = args.indexOf('--against');
const against = againstAt === -1 ? undefined : args[againstAt + 1];
const name = args.find((arg, index) => !arg.startsWith('-') && (againstAt === -1 || index !== againstAt + 1));
const known = await load();

if (args.includes('--list')) {
  for (const benchmark of known) console.log(`${benchmark.name.padEnd(18)} ${benchmark.question}`);
  process.exit(0);
}
const chosen = known.find((benchmark) => benchmark.name === name);
if (chosen === undefined) {
  console.error(
    name === undefined
      ? 'usage: npm run bench -- <name> [--quick | --save] [--against <commit>] | --list'
      : `no benchmark named ${name}; npm run bench -- --list shows them`,
  );
  process.exit(2);
}
if (againstAt !== -1 && (against === undefined || save)) {
  console.error('--against takes a commit, and prints its comparison without saving it: leave out --save.');
  process.exit(2);
}
if (quick && save) {
  console.error('A quick run is no evidence, so it is not saved: leave out --quick or --save.');
  process.exit(2);
}

const output: string[] = [];
const print = (line: string): void => {
  console.log(line);
  output.push(...line.split('\n'));
};
const context: BenchmarkContext = {
  quick,
  rounds: quick ? 2 : 7,
  roundSeconds: quick ? 1 : 4,
  print,
  ...(isTakingTurns ? { turns: turnsOfParent() } : {}),
};
const state = save ? sourceState(folder) : undefined;
const loadBefore = loadOfTheLastMinute();
const stolenBefore = quick ? 0 : await stolenWhileComputing();
const [began, cpuBefore] = [new Date(), cpuTime()];
console.log(`${chosen.name}: ${chosen.question}${quick ? ' (quick: no evidence)' : ''}\n`);
const ratios =
  against === undefined ? await chosen.run(context) : await compareWith(against, [chosen.name, ...(quick ? ['--quick'] : [])], print);
// What counts is what the other process was told.
if (isTakingTurns) process.exit(0);
console.log('');
for (const ratio of ratios) console.log(ratioLine(ratio));
const during = stolenShare(cpuBefore, cpuTime());
if (!quick && isDisturbed({ during, before: stolenBefore, after: await stolenWhileComputing() }))
  console.log(
    `\nThe host gave ${Math.round(during * 100)} % of this machine's CPU time to others, so the numbers are no evidence: run it again.`,
  );
else if (state !== undefined) {
  saveRun({
    name: chosen.name,
    question: chosen.question,
    date: began.toISOString(),
    ...state,
    command: `npm run bench -- ${chosen.name} --save`,
    machine: thisMachine(),
    loadBefore,
    seconds: Math.round((Date.now() - began.getTime()) / 1000),
    ratios: withVerdicts(ratios),
    output,
  });
  console.log(`\nsaved as benchmarks/results/${chosen.name}.json; npm run docs:reference puts it on the page`);
}
process.exit(ratios.every(passes) ? 0 : 1);
