import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './architecture/module-graph.ts';

/** What a database must have to take the statements of the toolkit, and how a source that uses it is recognized. */
const FEATURES: Readonly<Record<string, RegExp>> = {
  '`for update skip locked`': /for update skip locked/,
  '`for key share`': /for key share/,
  'advisory locks': /pg_advisory_xact_lock/,
  '`LISTEN` and `NOTIFY`': /pg_notify/,
  'partial indexes': /where: ['"`][a-z_]+ is not null/,
  'triggers with transition tables': /referencing old table/,
  'changing statements in `with`': /returning [\s\S]*?\), attempt as \(\s*insert/,
  '`ctid`': /\bctid\b/,
  domains: /create domain/,
  'full-text search': /to_tsvector/,
  'cancel requests': /cancelRequest|CancelRequest/,
  savepoints: /savepoint/,
};

const sources = globSync('packages/kit/src/**/*.ts', { cwd: root })
  .filter((path) => !path.endsWith('.test.ts'))
  .map((path) => readFileSync(join(root, path), 'utf8'));
const page = readFileSync(join(root, 'docs/guide/scale.md'), 'utf8');

test.each(Object.keys(FEATURES))('%s is used, and is a row of the table about other databases', (feature) => {
  expect(sources.some((source) => FEATURES[feature]?.test(source))).toBe(true);
  expect(page.split('\n').some((line) => line.startsWith(`| ${feature} |`))).toBe(true);
});

test('each row of the table about other databases is a feature that is used', () => {
  const [, table = ''] = /## Other databases[\s\S]*?\n\|---[^\n]*\n((?:\|[^\n]*\n)+)/.exec(page) ?? [];
  const rows = table
    .trim()
    .split('\n')
    .map((line) => line.split('|')[1]?.trim());
  expect(rows).toEqual(Object.keys(FEATURES));
});
