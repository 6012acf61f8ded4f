import { type EventType, eventType } from 'kit/contrib/webhooks';
import { z } from 'zod';

const Order = z.object({
  id: z.string(),
  item: z.string(),
  quantity: z.number(),
  total: z.string(),
  currency: z.string(),
  status: z.enum(['open', 'paid', 'cancelled']),
});
const Receipt = z.object({ id: z.string(), total: z.string() });

const id = '0198c5b0-0000-7000-8000-000000000001';
const example = { id, item: 'Filter paper', quantity: 3, total: '12.60', currency: 'EUR', status: 'open' } as const;

/** What customers can subscribe to: the portal shows it, and sends the examples. */
export const orderEventTypes: readonly EventType[] = [
  eventType('order.created', Order, { description: 'An order was placed.', example }),
  eventType('order.updated', Order, { description: 'An open order was changed.', example: { ...example, quantity: 2, total: '8.40' } }),
  eventType('order.paid', Order, { description: 'An order was paid.', example: { ...example, status: 'paid' } }),
  eventType('order.cancelled', Order, { description: 'An order was cancelled.', example: { ...example, status: 'cancelled' } }),
  eventType('order.deleted', Order, { description: 'An order was deleted.', example }),
  eventType('order.receipt', Receipt, { description: 'The receipt of a paid order is ready.', example: { id, total: '12.60' } }),
];
