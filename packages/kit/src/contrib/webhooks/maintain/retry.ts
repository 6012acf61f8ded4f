import type { Db } from '../../../db/engine/db.ts';
import { announcedWrite } from '../publishing/announced-write.ts';
import { webhookErrors } from '../errors.ts';
import { heldBehind } from '../endpoints/held-store.ts';
import { WAKE_CHANNEL } from '../publishing/publish-store.ts';
import { findDelivery, lockEndpoint, requeueDelivery, type WebhookDelivery } from '../endpoints/store.ts';
import { requireOwner } from './require-owner.ts';
import { webhooksOf } from '../webhooks.ts';
import { readOptions } from '../../../options/read-options.ts';
import { flag } from '../../../options/value-rule.ts';

/**
 * Queues the delivery that another one waits for, as `retryDelivery` does. One that is due already is left as it is: several may wait for it.
 */
export async function retryEarlier(db: Db, waiting: WebhookDelivery): Promise<RetriedEarlier> {
  const id = (await heldBehind(db, [waiting])).get(waiting.id)?.id;
  const before = id === undefined ? null : await findDelivery(db, id);
  if (before === null) throw webhookErrors.delivery_pending({ detail: 'It does not wait for an earlier delivery.' });
  const { attempts, next_attempt_at: next, claimed_until: claimed } = before;
  const isDue = attempts === 0 && claimed === null && next !== null && next <= webhooksOf(db).clock.now();
  return { before, after: isDue ? null : await retryDelivery(db, before.id, { force: true }) };
}

export interface RetriedEarlier {
  readonly before: WebhookDelivery;
  /** Null: it was due. */
  readonly after: WebhookDelivery | null;
}

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
  const from = force ? (['failed', 'pending', 'succeeded'] as const) : (['failed', 'pending'] as const);
  const requeued = await announcedWrite(db, 'webhook_deliveries', (tx) => requeueDelivery(tx, id, clock.now(), from));
  if (!requeued) throw delivery.status === 'succeeded' && !force ? webhookErrors.delivery_succeeded() : webhookErrors.delivery_claimed();
  await database.notify(db, WAKE_CHANNEL);
  return { ...delivery, ...(await findDelivery(db, id)) };
}
