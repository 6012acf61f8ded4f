import { describe, expect, test } from 'vitest';
import type { PortalChart } from './portal-page.ts';
import { chartPlan, drawnChart } from './stats-charts.ts';

const now = new Date('2030-01-15T10:20:00.000Z');
const chart: PortalChart = {
  title: 'Requests',
  kind: 'bars',
  unit: 'count',
  time: 'finished_at',
  since: 'since',
  by: 'failed',
  series: [
    { name: 'Succeeded', tone: 'good', metric: 'requests', value: 'false' },
    { name: 'Failed', tone: 'bad', metric: 'requests', value: 'true' },
  ],
};
const latency: PortalChart = {
  title: 'Latency',
  kind: 'lines',
  unit: 'ms',
  time: 'finished_at',
  since: 'since',
  series: [{ name: 'Mean', tone: 'info', metric: 'duration', weight: 'requests' }],
};

describe('charts of statistics', () => {
  test('hours for a day, days for a month: never more groups than statistics return', () => {
    const asked = (range: '1h' | '24h' | '7d' | '30d') => chartPlan(chart, false, range, now).query;
    expect(asked('24h')).toEqual({
      group_by: 'finished_at__hour,failed',
      metrics: 'requests',
      since: '2030-01-14T11:00:00.000Z',
    });
    expect(asked('7d')['group_by']).toBe('finished_at__hour,failed');
    expect(asked('30d')['group_by']).toBe('finished_at__day,failed');
    expect(asked('1h')).toMatchObject({ group_by: 'finished_at__hour,failed', since: '2030-01-15T10:00:00.000Z' });
  });

  test('a column of days is grouped by itself, from a day', () => {
    const { query, buckets } = chartPlan({ ...latency, time: 'day' }, true, '7d', now);
    expect(query).toEqual({ group_by: 'day', metrics: 'duration,requests', since: '2030-01-09' });
    expect(buckets.starts).toHaveLength(7);
  });

  test('counts of several hours are added up, by series; what is missing is 0', () => {
    const plan = chartPlan(chart, false, '7d', now);
    const { series, buckets } = drawnChart(chart, plan, [
      { finished_at__hour: '2030-01-15T06:00:00.000Z', failed: false, requests: 3 },
      { finished_at__hour: '2030-01-15T07:00:00.000Z', failed: false, requests: 4 },
      { finished_at__hour: '2030-01-15T07:00:00.000Z', failed: true, requests: 2 },
    ]);
    expect(buckets.at(-1)).toBe('2030-01-15T06:00:00.000Z');
    expect(series.map(({ name, values }) => [name, values.at(-1), values.at(-2)])).toEqual([
      ['Succeeded', 7, 0],
      ['Failed', 2, 0],
    ]);
  });

  test('a mean of several hours weighs them; of no requests there is none', () => {
    const plan = chartPlan(latency, false, '7d', now);
    const [series] = drawnChart(latency, plan, [
      { finished_at__hour: '2030-01-15T06:00:00.000Z', duration: 10, requests: 1 },
      { finished_at__hour: '2030-01-15T07:00:00.000Z', duration: 40, requests: 3 },
    ]).series;
    expect([series?.values.at(-1), series?.values.at(-2)]).toEqual([32.5, null]);
  });

  test('without rows the chart has no data', () => {
    expect(drawnChart(chart, chartPlan(chart, false, '24h', now), []).series).toEqual([]);
  });
});
