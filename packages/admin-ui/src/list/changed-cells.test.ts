import { expect, test } from 'vitest';
import { changedCells } from './changed-cells.ts';

const row = (id: string, values: Record<string, string | null>) => ({ id, title: id, values });

test('cells whose values are others are marked; new rows and rows that left are not', () => {
  const before = [row('a', { name: 'x', note: null }), row('b', { name: 'y', note: null })];
  const now = [row('c', { name: 'z', note: null }), row('a', { name: 'x', note: 'new' })];
  expect([...changedCells(before, now, new Set())]).toEqual(['note a']);
});

test('a mark stays while its row is there', () => {
  const rows = [row('a', { name: 'x' })];
  expect([...changedCells(rows, rows, new Set(['name a', 'name b']))]).toEqual(['name a']);
});
