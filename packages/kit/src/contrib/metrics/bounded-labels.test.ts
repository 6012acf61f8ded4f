import { expect, test } from 'vitest';
import { BoundedLabels } from './bounded-labels.ts';

test('a closed label takes only its own values', () => {
  const labels = new BoundedLabels({ outcome: ['sent', 'failed'] });
  expect(labels.bound({ outcome: 'sent' })).toEqual({ outcome: 'sent' });
  for (const hostile of ['', 'SENT', '__proto__', 'constructor', '"} 1\nfake 1', 7 as never, undefined as never, null as never])
    expect(labels.bound({ outcome: hostile })).toEqual({ outcome: 'other' });
});

test('an open label takes the first values it sees and remembers them', () => {
  const labels = new BoundedLabels({ queue: { max: 2 } });
  const seen = ['a', 'b', 'c', 'a', '__proto__', 'b'].map((queue) => labels.bound({ queue }).queue);
  expect(seen).toEqual(['a', 'b', 'other', 'a', 'other', 'b']);
});

test('however many values are sent, there are no more time series than declared', () => {
  const labels = new BoundedLabels({ queue: { max: 10 }, outcome: ['sent', 'failed'] });
  const series = new Set<string>();
  for (let index = 0; index < 10_000; index += 1)
    series.add(JSON.stringify(labels.bound({ queue: `q${'x'.repeat(index % 300)}${index}`, outcome: `o${index}` })));
  expect(labels.seriesMax).toBe(33);
  expect(series.size).toBeLessThanOrEqual(33);
  expect(Math.max(...[...series].map((each) => each.length))).toBeLessThan(200);
});
