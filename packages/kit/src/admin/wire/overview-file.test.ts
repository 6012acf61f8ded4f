import { expect, test } from 'vitest';
import { overviewFile } from './overview-file.ts';

test('the numbers of the overview are a file with one value on each line, and no spreadsheet runs a title', () => {
  const buckets = ['2026-01-31T00:00:00.000Z', '2026-01-31T01:00:00.000Z'];
  const chart = { title: '=1+1', kind: 'bars' as const, unit: 'count' as const, buckets };
  const series = [
    { name: 'paid', tone: 'good' as const, values: [3, null] },
    { name: 'open', tone: 'neutral' as const, values: [0, 1.5] },
  ];
  const parts = [{ title: 'Shop, own', tiles: [], charts: [{ ...chart, series }], tables: [] }];
  expect(overviewFile(parts).split('\r\n')).toEqual([
    'part,chart,unit,series,from,value',
    `"Shop, own",'=1+1,count,paid,2026-01-31T00:00:00.000Z,3`,
    `"Shop, own",'=1+1,count,paid,2026-01-31T01:00:00.000Z,`,
    `"Shop, own",'=1+1,count,open,2026-01-31T00:00:00.000Z,0`,
    `"Shop, own",'=1+1,count,open,2026-01-31T01:00:00.000Z,1.5`,
    '',
  ]);
});
