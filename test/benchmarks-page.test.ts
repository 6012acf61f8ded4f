import { hostname } from 'node:os';
import { expect, test } from 'vitest';
import { thisMachine, withVerdicts, type SavedRun } from '../benchmarks/harness/saved-run.ts';
import { benchmarksPage } from '../scripts/benchmarks-page.ts';

const run = (ratios: SavedRun['ratios']): SavedRun => ({
  name: 'read',
  question: 'How fast?',
  date: '2026-01-02T03:04:05.000Z',
  commit: '0123456789abcdef',
  modified: false,
  command: 'npm run bench -- read --save',
  machine: { cpu: 'Some CPU', cores: 4, memoryGiB: 8, system: 'linux x64', node: '24.0.0' },
  loadBefore: 0.1,
  seconds: 60,
  ratios,
  output: ['kit 100'],
});

test('the page tells what was measured, what is missing and what was lost', () => {
  const ratios = withVerdicts([
    { name: 'vs-peer', value: 2.34567, goal: 2 },
    { name: 'vs-bare', value: 0.8, goal: 0.75 },
    { name: 'vs-best', value: 0.5, goal: 1 },
    { name: 'bytes', value: 3, goal: 4, atMost: true },
  ]);
  const page = benchmarksPage(['read', 'write'], new Map([['read', run(ratios)]]));
  expect(page).toContain('| [read](../benchmarks/results/read.json) | How fast? | 3 of 4; missed: vs-best 0.500 (goal 1) |');
  expect(page).toContain('Without a saved run so far: `write`.');
});

test('a saved run does not name the machine', () => {
  expect(JSON.stringify(thisMachine())).not.toContain(hostname());
});
