import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { controllerRules, resourceRules } from '../packages/kit/src/crud/options/option-rules.ts';
import { limits, usualLimits } from '../packages/kit/src/crud/declare/limits.ts';
import { root } from './architecture/module-graph.ts';

const page = readFileSync(join(root, 'docs/reference/crud.md'), 'utf8');
const section = (title: string) => page.split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? '';
const rowsOf = (title: string) => [...section(title).matchAll(/^\| `(\w+)` \|/gm)].map((match) => match[1] as string);

test('every option of resource() has a row of its own on the reference page, and no other', () => {
  expect(rowsOf('The resource').toSorted()).toEqual(Object.keys(resourceRules).toSorted());
});

test('every option of CrudController() has a row of its own on the reference page, and no other', () => {
  expect(rowsOf('The controller').toSorted()).toEqual(Object.keys(controllerRules).toSorted());
});

test.each([
  ['The resource', resourceRules],
  ['The controller', controllerRules],
])('every option of "%s" stands in an example that is compiled', (_title, rules) => {
  const code = [...page.matchAll(/^```ts(?: continues)?\n([\s\S]*?)^```/gm)].map(([, text]) => text).join('\n');
  expect(Object.keys(rules).filter((option) => !new RegExp(`(?<![\\w.])${option}: `).test(code))).toEqual([]);
});

/** What the page says about each; a limit without a line here does not compile. */
const said: Readonly<Record<keyof typeof limits | keyof typeof usualLimits, string>> = {
  page: '50 rows unless a client asks for more',
  pageMax: 'at most 1,000',
  pageNumberedMax: 'of pages with numbers at most 100',
  offset: 'offsets up to 10,000',
  filters: '30 filters',
  listValues: '100 values in a list',
  allListValues: '5,000 in all lists of a request',
  whereDepth: 'QUERY trees of 5 levels',
  whereLeaves: '50 conditions',
  searchLength: 'searches of 200 characters',
  searchWords: '10 words',
  orderingColumns: '3 ordering columns',
  orderingText: '200 characters of a text column in an ordering',
  orderingTexts: '600 of all of them',
  expandDepth: 'expansions 3 deep',
  expandPaths: '10 paths',
  expandRows: '10,000 rows',
  countUpTo: 'counts up to 1,000',
  importBytes: '10 MB',
  importRows: '10,000 rows',
  importColumns: '1,000 columns',
  importErrors: '50 errors of an import',
  statsGroups: 'stats of 3 groups',
  statsMetrics: '10 metrics',
  statsRows: '1,000 rows',
  exportRows: '1,000,000 rows in an export',
  exportIdleMs: '60 s without a byte taken',
  exportDurationMs: '15 minutes',
  plans: '1,000 cached statements per resource',
  visibilityPermissions: '6 distinct permissions of field rules',
  nested: '100 nested rows per relation',
  bulk: '100 items of a bulk operation',
  cascadeRows: '10,000 rows of a cascade',
  liveRows: '5,000 records',
};

test('the page says every limit', () => {
  const text = section('Limits').replaceAll(/\s+/g, ' ');
  expect(Object.keys(said).toSorted()).toEqual(Object.keys({ ...limits, ...usualLimits }).toSorted());
  expect(Object.entries(said).filter(([, sentence]) => !text.includes(sentence))).toEqual([]);
});
