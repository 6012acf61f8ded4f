import { expect, test } from 'vitest';
import { receiverPage } from './receiver-page.ts';

const message = {
  verified: true,
  webhook_id: 'msg_1',
  type: 'order.paid',
  timestamp: '2026-03-01T09:00:00.000Z',
  data: { note: '<script>' },
} as const;

test('the page shows what arrived, newest first, marked as verified, and follows by itself', () => {
  const page = receiverPage([message, { ...message, webhook_id: 'msg_2', type: 'order.placed' }]);
  expect(page.indexOf('order.placed')).toBeLessThan(page.indexOf('order.paid'));
  expect(page.match(/signature verified/g)).toHaveLength(2);
  expect(page).toContain('<meta http-equiv="refresh"');
  expect(receiverPage([])).toContain('Nothing has arrived yet');
});

test('what a sender writes is text on the page, never markup', () => {
  expect(receiverPage([message])).not.toContain('<script>');
});
