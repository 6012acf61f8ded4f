import { expect, test } from 'vitest';
import { alertsTable, databaseTile, diskTile } from './health.ts';

test('a disk with little room and a slow database need attention; others do not', () => {
  expect([60, 14, 4].map((free) => diskTile(free).tone)).toEqual(['good', 'warning', 'bad']);
  expect([2, 900].map((ms) => databaseTile('Database', ms).tone)).toEqual(['good', 'warning']);
});

test('every tile that needs attention is an alert, the worst first, and no other is', () => {
  const { rows } = alertsTable([
    { title: 'Health', tiles: [databaseTile('Database', 900), diskTile(50)] },
    {
      title: 'Jobs',
      tiles: [
        { label: 'Oldest ready', value: 600_000, unit: 'age_ms', tone: 'bad', link: { resource: 'jobs', filters: { due: 'ready' } } },
      ],
    },
  ]);
  expect(rows.map(({ values }) => [values['what'], values['value']])).toEqual([
    [{ resource: 'jobs', filters: { due: 'ready' }, text: 'Jobs: Oldest ready' }, '10 min'],
    ['Health: Database', '900 ms'],
  ]);
});

test.each([
  [30_000, 'less than a minute'],
  [3_600_000, '1 h'],
  [97_200_000 + 60_000, '1 d 3 h'],
])('an alert shows an age of %i ms as %s, and its hint without marks of code', (value, shown) => {
  const { rows } = alertsTable([
    { title: 'Jobs', tiles: [{ label: 'Oldest', value, unit: 'age_ms', tone: 'bad', hint: 'Run `npx kit jobs work`.' }] },
  ]);
  expect(rows[0]?.values).toMatchObject({ value: shown, hint: 'Run npx kit jobs work.' });
});
