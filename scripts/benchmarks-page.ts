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

Each benchmark compares us with other code **within one run**: both take turns on the same machine, so that other work slows both. Compare the ratios with your own machine,
not the rates. A ratio of 1 is a draw; below 1 we are slower, or use more. "vs bare" and "cpu" compare with the least code that does the job; there a goal below 1 is the accepted cost.

\`\`\`sh not-run
npm run bench -- --list               # the questions
npm run bench -- config-read --save   # run one, and keep the result in benchmarks/results
npm run bench -- config-read --against HEAD~1   # this tree against another commit: CPU per operation at most 1.05 times
npm run docs:reference                # rebuild this page
\`\`\`

A run is not saved if other programs of the host took more than 5 % of the CPU time.

## Results

The name leads to the saved run: the machine, the command, and every ratio with its goal.

${measured.length === 0 ? 'No run has been saved yet.' : summary(measured)}

${missing.length === 0 ? 'Every benchmark has a saved run.' : `Without a saved run so far: ${missing.map((name) => `\`${name}\``).join(', ')}.`}

Also measured: an order with all guarantees in [three products](../benchmarks/flow/REVIEW.md), and the seconds without writes at a [failover](guide/backup-and-failover.md#failover-what-you-see-at-night).
`;
}

function summary(runs: readonly SavedRun[]): string {
  const rows = runs.map(({ name, question, ratios }) => {
    const missed = ratios
      .filter(({ pass }) => !pass)
      .map((ratio) => `${shortName(ratio.name, name)} ${number(ratio.value)} (goal ${number(ratio.goal)})`);
    const met = missed.length === 0 ? 'all' : `${ratios.length - missed.length} of ${ratios.length}; missed: ${missed.join(', ')}`;
    return `| [${name}](../benchmarks/results/${name}.json) | ${question} | ${met} |`;
  });
  return ['| benchmark | question | goals met |', '|---|---|---|', ...rows].join('\n');
}

/** Ratios begin with the name of their benchmark, or with its first word. */
function shortName(ratio: string, benchmark: string): string {
  const [family = ''] = benchmark.split('-');
  const rest = [benchmark, family].find((start) => ratio.startsWith(`${start}-`));
  return rest === undefined ? ratio : ratio.slice(rest.length + 1);
}

function number(value: number): string {
  return value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toPrecision(3);
}
