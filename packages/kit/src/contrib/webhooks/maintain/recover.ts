import type { Db } from '../../../db/engine/db.ts';
import { announcedWrite } from '../publishing/announced-write.ts';
import { webhookErrors } from '../errors.ts';
import { hastenWaitingOf, insertMissedOf, requeueFailedOf } from '../endpoints/management-store.ts';
import { WAKE_CHANNEL } from '../publishing/publish-store.ts';
import type { WebhookEndpoint } from '../endpoints/store.ts';
import { requireOwner } from './require-owner.ts';
import { webhooksOf } from '../webhooks.ts';
import { requireArguments } from '../../../options/read-options.ts';
import { anObject, queryable } from '../../../options/value-rule.ts';

/** Deliveries of one call: a transaction that holds a few seconds of locks at most. */
export const RECOVERED_MAX = 10_000;

export interface Recovered {
  /** Failed deliveries that are due again. */
  readonly requeued: number;
  /** Deliveries of events that came while the endpoint was disabled. */
  readonly added: number;
  /** False: there may be more; repeat the call. */
  readonly complete: boolean;
}

/** Sends an endpoint the events that it missed since then: failed deliveries, and events published while it was disabled. */
export async function recoverEndpoint(
  tx: Db,
  endpoint: Pick<WebhookEndpoint, 'id' | 'is_active'>,
  since: Date,
  limit: number = RECOVERED_MAX,
): Promise<Recovered> {
  requireArguments('recoverEndpoint()', { tx, endpoint }, { tx: queryable, endpoint: anObject });
  if (!endpoint.is_active) throw webhookErrors.endpoint_disabled();
  await requireOwner(tx, endpoint.id);
  const { clock, database } = webhooksOf(tx);
  const window = { since, now: clock.now(), limit };
  const [requeued, added] = await announcedWrite(tx, 'webhook_deliveries', async (db) => [
    await requeueFailedOf(db, endpoint.id, window),
    await insertMissedOf(db, endpoint.id, window),
  ]);
  if (requeued + added > 0) await database.notify(tx, WAKE_CHANNEL);
  return { requeued, added, complete: requeued < limit && added < limit };
}

/** What waits for its next attempt is tried now, at most as many as one transaction may hold. */
export async function retryWaiting(tx: Db, endpoint: Pick<WebhookEndpoint, 'id' | 'is_active'>): Promise<number> {
  if (!endpoint.is_active) throw webhookErrors.endpoint_disabled();
  await requireOwner(tx, endpoint.id);
  const { clock, database } = webhooksOf(tx);
  const count = await announcedWrite(tx, 'webhook_deliveries', (db) => hastenWaitingOf(db, endpoint.id, clock.now(), RECOVERED_MAX));
  if (count > 0) await database.notify(tx, WAKE_CHANNEL);
  return count;
}
