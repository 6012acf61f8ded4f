import type { Db } from '../../../db/engine/db.ts';
import { webhookErrors } from '../errors.ts';
import { heldBehind } from '../endpoints/held-store.ts';
import { WAKE_CHANNEL } from '../publishing/publish-store.ts';
import { findDelivery, lockEndpoint, requeueDelivery, type WebhookDelivery } from '../endpoints/store.ts';
import { requireOwner } from './require-owner.ts';
import { webhooksOf } from '../webhooks.ts';
import { readOptions } from '../../../options/read-options.ts';
import { flag } from '../../../options/value-rule.ts';

export interface RetryOptions {
  /** Sends again what has succeeded already. */
  readonly force?: boolean;
}

/** Queues a delivery again with all its attempts, whatever its schedule says. Refused while a worker holds it, and behind an earlier one. */
export async function retryDelivery(db: Db, id: string, options: RetryOptions = {}): Promise<WebhookDelivery> {
  const { force = false } = readOptions('retryDelivery()', options, { force: flag });
  const { clock, database } = webhooksOf(db);
  const delivery = await findDelivery(db, id);
  if (delivery === null) throw webhookErrors.delivery_not_found();
  // Locked: what is queued while the endpoint is being disabled would be seen by nobody.
  if ((await lockEndpoint(db, delivery.endpoint_id))?.is_active !== true) throw webhookErrors.endpoint_disabled();
  await requireOwner(db, delivery.endpoint_id);
  const earlier = (await heldBehind(db, [delivery])).get(id);
  if (earlier !== undefined) throw webhookErrors.delivery_held({ extensions: { waits_for: earlier.id } });
  const requeued = await requeueDelivery(db, id, clock.now(), force ? ['failed', 'pending', 'succeeded'] : ['failed', 'pending']);
  if (!requeued) throw delivery.status === 'succeeded' && !force ? webhookErrors.delivery_succeeded() : webhookErrors.delivery_claimed();
  await database.notify(db, WAKE_CHANNEL);
  return { ...delivery, ...(await findDelivery(db, id)) };
}
