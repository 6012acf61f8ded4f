import { expect, test } from 'vitest';
import { alertsTable, databaseTile, diskTile } from './health.ts';

test('a disk with little room and a slow database need attention; others do not', () => {
  expect([60, 14, 4].map((free) => diskTile(free).tone)).toEqual(['good', 'warning', 'bad']);
  expect([2, 900].map((ms) => databaseTile('Database', ms).tone)).toEqual(['good', 'warning']);
});

test('every tile that needs attention is an alert, the worst first, and no other is', () => {
  const { rows } = alertsTable([
    { title: 'Health', tiles: [databaseTile('Database', 900), diskTile(50)] },
    { title: 'Jobs', tiles: [{ label: 'Oldest ready', value: 600_000, unit: 'age_ms', tone: 'bad' }] },
  ]);
  expect(rows.map(({ values }) => [values['what'], values['value']])).toEqual([
    ['Jobs: Oldest ready', '10 min'],
    ['Health: Database', '900 ms'],
  ]);
});
