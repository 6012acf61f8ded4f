import { expect, test } from 'vitest';
import type { AdminTimelineEntry } from '../../app/admin/sections.ts';
import { byRequest } from './by-request.ts';

const entry = (title: string, request_id?: string, more: Partial<AdminTimelineEntry> = {}): AdminTimelineEntry => ({
  at: '2026-03-01T12:00:00.000Z',
  title,
  tone: 'neutral',
  ...(request_id === undefined ? {} : { request_id }),
  ...more,
});

test('what a request did besides is folded under what it did to the record; entries without a request stand alone', () => {
  const [paid, event, delivery, job, alone] = [
    entry('Order paid', 'a'),
    entry('event', 'a'),
    entry('delivery', 'a'),
    entry('job', 'b'),
    entry('by hand'),
  ];
  expect(byRequest([paid, event, delivery, job, alone], new Set([paid]))).toEqual([{ ...paid, folded: [event, delivery] }, job, alone]);
});

test('two changes in one request are one, from the value before both to the value after both', () => {
  const newer = entry('Order approved', 'a', {
    changes: [
      { name: 'total', before: 2, after: 3 },
      { name: 'note', before: 'x' },
    ],
  });
  const older = entry('Order updated', 'a', { changes: [{ name: 'total', before: 1, after: 2, restore: 1 }] });
  expect(byRequest([newer, older], new Set([newer, older]))).toEqual([
    {
      ...newer,
      title: 'Order updated, Order approved',
      changes: [
        { name: 'total', before: 1, after: 3, restore: 1 },
        { name: 'note', before: 'x' },
      ],
    },
  ]);
});
