import type { Db } from '../../../db/engine/db.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { webhookErrors } from '../errors.ts';
import { announcedWrite } from '../publishing/announced-write.ts';
import { insertEventFor } from './management-store.ts';
import { EXAMPLE_KEY, PING_EVENT } from './ping-event.ts';
import { WAKE_CHANNEL } from '../publishing/publish-store.ts';
import type { WebhookDelivery, WebhookEndpoint } from './store.ts';
import { webhooksOf } from '../webhooks.ts';
import { requireArguments } from '../../../options/read-options.ts';
import { anObject, queryable } from '../../../options/value-rule.ts';

/** What is sent in place of a ping. */
export interface ExampleEvent {
  /** The type of the event. */
  readonly type: string;
  /** Its `data`. */
  readonly data: object;
}

/** Queues a `webhook.ping` event, or an example, for this endpoint alone, in the caller's transaction. */
export async function pingEndpoint(
  tx: Db,
  endpoint: Pick<WebhookEndpoint, 'id' | 'owner_id' | 'tenant_key' | 'is_active'>,
  example?: ExampleEvent,
): Promise<WebhookDelivery> {
  requireArguments('pingEndpoint()', { tx, endpoint }, { tx: queryable, endpoint: anObject });
  if (!endpoint.is_active) throw webhookErrors.endpoint_disabled();
  const { clock, database } = webhooksOf(tx);
  const id = uuidv7(clock);
  const event = {
    id,
    type: example?.type ?? PING_EVENT,
    data: JSON.stringify(example?.data ?? { endpoint_id: endpoint.id }),
    timestamp: clock.now(),
    idempotency_key: example === undefined ? null : `${EXAMPLE_KEY} ${id}`,
  };
  const delivery = await announcedWrite(tx, 'webhook_deliveries', (db) => insertEventFor(db, endpoint, event, uuidv7(clock)));
  await database.notify(tx, WAKE_CHANNEL);
  return delivery;
}
