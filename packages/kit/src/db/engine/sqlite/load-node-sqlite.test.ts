import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadNodeSqlite } from './load-node-sqlite.ts';

test('no source file imports node:sqlite but for its types: PostgreSQL alone needs no Node that has it', () => {
  const sources = join(import.meta.dirname, '../../..');
  const importing = readdirSync(sources, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .filter((file) => /^import (?!type\b)[^;]*from 'node:sqlite'/m.test(readFileSync(join(sources, file), 'utf8')));
  expect(importing).toEqual([]);
});

test('it is loaded when it is asked for', () => {
  expect(new (loadNodeSqlite().DatabaseSync)(':memory:').prepare('select 1 as one').get()).toEqual({ one: 1 });
});

test.each(['22.19.0', '24.14.9'])('SQLite on Node %s is refused with a sentence', (version) => {
  expect(() => loadNodeSqlite(version)).toThrow(
    `SQLite needs Node 24.15 or later, and this is ${version}. Update Node, or use PostgreSQL.`,
  );
});

test.each(['24.15.0', '26.0.0'])('SQLite on Node %s is loaded', (version) => {
  expect(loadNodeSqlite(version).DatabaseSync).toBeTypeOf('function');
});
