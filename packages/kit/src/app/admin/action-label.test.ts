import { expect, test } from 'vitest';
import { actionLabel } from './action-label.ts';

test.each([
  ['order.updated', 'Order updated'],
  ['webhook_endpoint.secret_rotated', 'Webhook endpoint secret rotated'],
  ['api_key.revoked', 'API key revoked'],
  ['order.transition:approve', 'Order transition approve'],
  ['login', 'Login'],
])('%s is read as %s', (action, label) => {
  expect(actionLabel(action)).toBe(label);
});
