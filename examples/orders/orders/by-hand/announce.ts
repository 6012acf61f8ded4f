import { publish } from 'kit/contrib/webhooks';
import type { Db } from 'kit/db';
import type { Order } from '../models.ts';

/** The event exists exactly when the change does: it is a row of the same transaction. */
export async function announce(tx: Db, type: string, { id, owner_id, item, quantity, total, currency, status }: Order): Promise<void> {
  await publish(tx, type, { id, item, quantity, total, currency, status }, { owner: owner_id, orderingKey: id });
}
