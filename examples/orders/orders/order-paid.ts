import { domainEvent, on } from 'kit';
import { publish } from 'kit/contrib/webhooks';
import { z } from 'zod';

export const OrderPaid = domainEvent('order.paid', z.object({ id: z.string(), owner_id: z.string(), total: z.string() }));

/** A job of its own: the receipt is announced even when this process ends right after the payment, and tried again when it fails. */
export const announceReceipt = on(
  OrderPaid,
  async ({ id, owner_id, total }, { db }) => {
    await db.transaction((tx) =>
      publish(tx, 'order.receipt', { id, total }, { owner: owner_id, orderingKey: id, idempotencyKey: `receipt-${id}` }),
    );
  },
  { durable: true, name: 'announceReceipt' },
);
