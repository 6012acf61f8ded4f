import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadNodeSqlite } from './load-node-sqlite.ts';

test('no source file imports node:sqlite but for its types: PostgreSQL alone needs no Node that has it', () => {
  const sources = join(import.meta.dirname, '../..');
  const importing = readdirSync(sources, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .filter((file) => /^import (?!type\b)[^;]*from 'node:sqlite'/m.test(readFileSync(join(sources, file), 'utf8')));
  expect(importing).toEqual([]);
});

test('it is loaded when it is asked for', () => {
  expect(new (loadNodeSqlite().DatabaseSync)(':memory:').prepare('select 1 as one').get()).toEqual({ one: 1 });
});
