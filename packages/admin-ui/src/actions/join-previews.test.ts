import { expect, test } from 'vitest';
import { joinPreviews } from './join-previews.ts';

const failed = (message: string, ...ids: string[]) => ids.map((id) => ({ id, message }));
const orders = ['order', 'orders'] as const;

test('the batches of a selection are one sentence: how many will be done, how many cannot, and why', () => {
  const parts = [
    { tone: 'warning' as const, message: '', able: 98, failures: failed('It is paid.', 'a', 'b') },
    { tone: 'good' as const, message: '', able: 1, failures: [] },
  ];
  expect(joinPreviews(parts, 'paid', orders)).toMatchObject({
    able: 99,
    tone: 'warning',
    message: '99 orders will be paid, 2 cannot: It is paid.',
  });
  const mixed = [
    { tone: 'bad' as const, message: '', able: 0, failures: [...failed('It is paid.', 'a', 'b'), ...failed('It is gone.', 'c')] },
  ];
  expect(joinPreviews(mixed, 'paid', orders)?.message).toBe('0 orders will be paid, 3 cannot: 2 × It is paid. 1 × It is gone.');
});

test('a preview that is not a dry run is shown as it is', () => {
  const only = { tone: 'info' as const, message: 'Sends 3 events.' };
  expect(joinPreviews([only], undefined, orders)).toBe(only);
  expect(joinPreviews([], 'paid', orders)).toBeNull();
});

test('what the action says besides stands once at the end, and its tone counts', () => {
  const note = 'They can be sent again.';
  const parts = [
    { tone: 'warning' as const, message: '', able: 2, failures: [], note },
    { tone: 'good' as const, message: '', able: 1, failures: [], note },
  ];
  expect(joinPreviews(parts, 'disabled', orders)).toMatchObject({
    tone: 'warning',
    message: '3 orders will be disabled. They can be sent again.',
  });
});
