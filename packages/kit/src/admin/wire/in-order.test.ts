import { expect, test } from 'vitest';
import type { AdminTimelineEntry } from '../../app/admin/sections.ts';
import { inOrder } from './in-order.ts';

const entry = (title: string, ms: number, request?: string): AdminTimelineEntry => ({
  at: new Date(Date.UTC(2026, 0, 1) + ms).toISOString(),
  title,
  tone: 'neutral',
  ...(request === undefined ? {} : { request_id: request }),
});

const shown = (changes: readonly AdminTimelineEntry[], effects: readonly AdminTimelineEntry[]) =>
  inOrder([...changes, ...effects], new Set(changes)).map(({ title }) => title);

test('effects stand above the change that caused them, whichever was written first', () => {
  for (const changed of [90, 100, 110])
    expect([changed, shown([entry('change', changed, 'a')], [entry('event', 100, 'a'), entry('delivery', 100, 'a')])]).toEqual([
      changed,
      ['event', 'delivery', 'change'],
    ]);
});

test('a second change of the request, long after the effects of the first, stays where its time is', () => {
  expect(shown([entry('first', 0, 'a'), entry('second', 60_000, 'a')], [entry('event', 1, 'a')])).toEqual(['second', 'event', 'first']);
});

test('requests stand together, the newest first; what has no request stands alone', () => {
  expect(shown([entry('a1', 0, 'a'), entry('b1', 5_000, 'b'), entry('alone', 7_000)], [entry('a2', 9_000, 'a')])).toEqual([
    'a2',
    'a1',
    'alone',
    'b1',
  ]);
});
