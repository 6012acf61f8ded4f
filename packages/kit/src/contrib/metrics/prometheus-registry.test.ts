import { expect, test } from 'vitest';
import { PrometheusRegistry } from './prometheus-registry.ts';

const registryOf = () =>
  new PrometheusRegistry((metric, error) => {
    throw new Error(`${metric} failed`, { cause: error });
  });
const linesOf = async (registry: PrometheusRegistry, name: string) =>
  (await registry.text()).split('\n').filter((line) => line.startsWith(name));

test('a histogram counts what is at most each bound, and everything at the end; a value on a bound belongs to it', async () => {
  const registry = registryOf();
  const histogram = registry.histogram({ name: 'kit_size_bytes', help: 'Sizes.', labels: { kind: ['a', 'b'] }, buckets: [1, 10] });
  for (const value of [0.5, 1, 2, 10, 11]) histogram.observe({ kind: 'a' }, value);
  expect(await linesOf(registry, 'kit_size_bytes')).toEqual([
    'kit_size_bytes_bucket{le="1",kind="a"} 2',
    'kit_size_bytes_bucket{le="10",kind="a"} 4',
    'kit_size_bytes_bucket{le="+Inf",kind="a"} 5',
    'kit_size_bytes_sum{kind="a"} 24.5',
    'kit_size_bytes_count{kind="a"} 5',
  ]);
});

test('values beyond a closed list or the limit of an open one share a series, however often and in whatever order they come', async () => {
  const registry = registryOf();
  const counter = registry.counter({ name: 'kit_seen_total', help: 'Seen.', labels: { kind: ['a'], who: { max: 2 } } });
  for (let round = 0; round < 3; round++)
    for (const [kind, who] of [
      ['a', 'x'],
      ['b', 'y'],
      ['__proto__', 'z'],
      ['a', 'w'],
      ['c', 'constructor'],
    ] as const)
      counter.add({ kind, who });
  expect((await linesOf(registry, 'kit_seen_total')).toSorted()).toEqual([
    'kit_seen_total{kind="a",who="other"} 3',
    'kit_seen_total{kind="a",who="x"} 3',
    'kit_seen_total{kind="other",who="other"} 6',
    'kit_seen_total{kind="other",who="y"} 3',
  ]);
});

test('a metric without labels is shown before anything happened', async () => {
  const registry = registryOf();
  registry.counter({ name: 'kit_starts_total', help: 'Starts.' });
  registry.histogram({ name: 'kit_wait_seconds', help: 'Waits.', buckets: [1] });
  expect(await linesOf(registry, 'kit_starts_total')).toEqual(['kit_starts_total 0']);
  expect(await linesOf(registry, 'kit_wait_seconds_count')).toEqual(['kit_wait_seconds_count 0']);
});

test('label values are escaped', async () => {
  const registry = registryOf();
  registry.counter({ name: 'kit_seen_total', help: 'Seen.', labels: { who: { max: 5 } } }).add({ who: 'a"b\\c\nd' });
  expect(await linesOf(registry, 'kit_seen_total')).toEqual(['kit_seen_total{who="a\\"b\\\\c\\nd"} 1']);
});

test('a counter only rises, and a histogram takes numbers only', () => {
  const registry = registryOf();
  const counter = registry.counter({ name: 'kit_seen_total', help: 'Seen.' });
  const histogram = registry.histogram({ name: 'kit_wait_seconds', help: 'Waits.' });
  for (const by of [-1, Number.NaN, Infinity]) expect(() => counter.add({}, by)).toThrow('a counter only rises');
  for (const value of [Number.NaN, Infinity]) expect(() => histogram.observe({}, value)).toThrow('is not a number');
});
