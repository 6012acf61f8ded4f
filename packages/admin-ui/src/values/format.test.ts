import { expect, test } from 'vitest';
import { numberedLabel } from './format.ts';

test.each([
  ['Delete', 18, ['order', 'orders'], 'Delete 18 orders'],
  ['Approve', 1, ['order', 'orders'], 'Approve 1 order'],
  ['Pay the order', 10, ['order', 'orders'], 'Pay 10 orders'],
  ['Cancel the jobs', 3, ['job', 'jobs'], 'Cancel 3 jobs'],
  ['Retry selected', 2, ['job', 'jobs'], 'Retry 2 jobs'],
  ['Run selected now', 2, ['schedule', 'schedules'], 'Run 2 schedules now'],
  ['Mark', 2, ['item (old)', 'items (old)'], 'Mark 2 items (old)'],
] as const)('the number stands where "%s" names its records', (label, count, nouns, text) => {
  expect(numberedLabel(label, count, nouns)).toBe(text);
});
