import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { resultsFolder, savedRuns, type SavedRun } from '../benchmarks/harness/saved-run.ts';

const folder = resolve(import.meta.dirname, '..', 'benchmarks');

/** A benchmark's name, and the comment at the top of its file that states the question in full. */
interface Question {
  readonly name: string;
  readonly text: string;
}

function questions(): Question[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.ts') && file !== 'run.ts')
    .sort()
    .map((file) => {
      const [comment = ''] = /^(\/\/.*\n)+/.exec(readFileSync(join(folder, file), 'utf8')) ?? [];
      return {
        name: file.replace(/\.ts$/, ''),
        text: comment
          .replaceAll(/^\/\/ ?/gm, '')
          .trim()
          .replaceAll('\n', ' '),
      };
    });
}

/** docs/benchmarks.md, from the runs in benchmarks/results. */
export function benchmarksPage(asked = questions(), runs = existsSync(resultsFolder) ? savedRuns() : new Map<string, SavedRun>()): string {
  const measured = asked.flatMap(({ name }) => runs.get(name) ?? []);
  const missing = asked.filter(({ name }) => !runs.has(name));
  const parts = asked.flatMap((question) => {
    const run = runs.get(question.name);
    return run === undefined ? [] : [section(question, run)];
  });
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

${measured.length === 0 ? 'No run has been saved yet.' : summary(measured)}

${missing.length === 0 ? 'Every benchmark has a saved run.' : `Without a saved run so far: ${missing.map(({ name }) => `\`${name}\``).join(', ')}.`}

## What we lose

${losses(measured)}

## Failover

Seconds without writes after the database's address leads to a server that takes writes, with what was lost or doubled: [Failover](guide/backup-and-failover.md#failover-what-you-see-at-night), measured by \`npm run test:long -- failover\`.

${parts.join('\n\n')}
`;
}

function summary(runs: readonly SavedRun[]): string {
  const rows = runs.flatMap((run) =>
    run.ratios.map(
      ({ name, value, goal, atMost, pass }) =>
        `| [${run.name}](#${run.name}) | ${name} | ${number(value)} | ${atMost === true ? '≤' : '≥'} ${goal} | ${pass ? 'met' : '**missed**'} |`,
    ),
  );
  return ['| benchmark | ratio | measured | goal | |', '|---|---|---|---|---|', ...rows].join('\n');
}

function losses(runs: readonly SavedRun[]): string {
  const all = runs.flatMap((run) => run.ratios);
  const missed = all
    .filter(({ pass }) => !pass)
    .map(({ name, value, goal }) => `- \`${name}\`: ${number(value)} where ${goal} was the goal.`);
  const slower = all
    .filter(({ pass, atMost, value }) => pass && atMost !== true && value < 1)
    .map(({ name, value }) => `- \`${name}\`: ${number(value)}, inside its goal and yet less than what it is compared with.`);
  return [...missed, ...slower].join('\n') || 'Nothing in the runs above.';
}

function section({ name, text }: Question, run: SavedRun): string {
  const { machine } = run;
  const busy =
    run.loadBefore > machine.cores / 2
      ? ' The machine was busy with other work, so trust ratios of CPU time more than ratios of rates.'
      : '';
  return `## ${name}

${text}

${run.date.slice(0, 10)}, commit \`${run.commit.slice(0, 10)}\`${run.modified ? ' with changes on top' : ''}; ${machine.cores} cores of ${machine.cpu}, ${machine.memoryGiB} GiB, ${machine.system}, Node ${machine.node}; ${run.seconds} s, load ${run.loadBefore} before the run.${busy}

\`\`\`sh not-run
${run.command}
\`\`\`

\`\`\`text
${run.output.join('\n').trim()}
\`\`\``;
}

function number(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
