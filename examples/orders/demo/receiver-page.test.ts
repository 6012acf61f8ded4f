import { expect, onTestFinished, test } from 'vitest';
import { receiverPage } from './receiver-page.ts';
import { startReceiver } from './start-receiver.ts';

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

test('a browser gets the page and every other client JSON; what is not signed is refused and not shown', async () => {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.stop());
  const unsigned = await fetch(`${receiver.url}hooks`, { method: 'POST', body: '{"type":"order.paid"}' });
  expect(unsigned.status).toBe(401);
  const page = await fetch(`${receiver.url}hooks`, { headers: { accept: 'text/html,*/*' } });
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(await page.text()).toContain('Nothing has arrived yet');
  const json = await fetch(`${receiver.url}hooks`);
  expect(json.headers.get('content-type')).toBe('application/json');
  expect(await json.json()).toEqual([]);
});
