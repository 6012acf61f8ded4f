import { existsSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { resultsFolder, savedRuns, type SavedRun } from '../benchmarks/harness/saved-run.ts';

const folder = resolve(import.meta.dirname, '..', 'benchmarks');

/** The benchmarks there are, by their files. */
function benchmarkNames(): string[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.ts') && file !== 'run.ts')
    .map((file) => file.replace(/\.ts$/, ''))
    .sort();
}

/** docs/benchmarks.md, from the runs in benchmarks/results. */
export function benchmarksPage(
  names = benchmarkNames(),
  runs = existsSync(resultsFolder) ? savedRuns() : new Map<string, SavedRun>(),
): string {
  const measured = names.flatMap((name) => runs.get(name) ?? []);
  const missing = names.filter((name) => !runs.has(name));
  return `# Benchmarks

<!-- Made by \`npm run docs:reference\` from benchmarks/results; a test fails when it is stale. -->

Each benchmark asks one question and answers it with ratios **within one run**: we and what we compare with take turns, round after round, on the
same machine, so that whatever else it does slows both. A ratio of 1 is a draw; below 1 we are slower, or use more. Ratios are what may be compared with your own
machine; the rates in the tables may not.

\`\`\`sh not-run
npm run bench -- --list               # the questions
npm run bench -- config-read          # one of them
npm run bench -- config-read --save   # … and keep the result in benchmarks/results
npm run bench -- config-read --against HEAD~1   # this tree against another commit, in turns: CPU per operation at most 1.05 times
npm run docs:reference                # rebuild this page
\`\`\`

A run says so, and is not saved, when a virtual machine's host gave more than 5 % of its CPU time to others meanwhile, and also while the machine did nothing but compute before or after the run: some hosts count their work for a virtual disk as time given to others.

Goals are our own. "vs bare" and "cpu" ratios compare with the least code that does the job with nothing around it, written
by us for that purpose: there a goal below 1 says what the comfort may cost.

## Results

The name of a benchmark leads to its saved run: the machine, the command and all that it printed.

${measured.length === 0 ? 'No run has been saved yet.' : summary(measured)}

${missing.length === 0 ? 'Every benchmark has a saved run.' : `Without a saved run so far: ${missing.map((name) => `\`${name}\``).join(', ')}.`}

## Missed goals

${losses(measured)}

## A whole product

An order with key, idempotency key, audit entry and webhooks to two endpoints, in a product of ours, on NestJS with BullMQ and on Fastify with graphile-worker: what each guarantees, what it costs, and what was done to make the others faster is in [order-flow: what was looked at](../benchmarks/flow/REVIEW.md).

## Failover

Seconds without writes after the database's address leads to a server that takes writes, with what was lost or doubled: [Failover](guide/backup-and-failover.md#failover-what-you-see-at-night), measured by \`npm run test:long -- failover\`.
`;
}

function summary(runs: readonly SavedRun[]): string {
  const rows = runs.map((run) => {
    const ratios = run.ratios.map(
      ({ name, value, goal, atMost, pass }) =>
        `${shortName(name, run.name)}: ${number(value)} (${atMost === true ? '≤' : '≥'} ${number(goal)}${pass ? '' : ', **missed**'})`,
    );
    return `| [${run.name}](../benchmarks/results/${run.name}.json) | ${run.question} | ${ratios.join('<br>')} |`;
  });
  return ['| benchmark | question | measured (goal) |', '|---|---|---|', ...rows].join('\n');
}

/** Ratios begin with the name of their benchmark, or with its first word. */
function shortName(ratio: string, benchmark: string): string {
  const [family = ''] = benchmark.split('-');
  const rest = [benchmark, family].find((start) => ratio.startsWith(`${start}-`));
  return rest === undefined ? ratio : ratio.slice(rest.length + 1);
}

function losses(runs: readonly SavedRun[]): string {
  const missed = runs
    .flatMap((run) => run.ratios)
    .filter(({ pass }) => !pass)
    .map(({ name, value, goal }) => `- \`${name}\`: ${number(value)} where ${number(goal)} was the goal.`);
  return missed.join('\n') || 'Nothing in the runs above.';
}

function number(value: number): string {
  return value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toPrecision(3);
}
