import type { Db } from '../../db/db.ts';
import { recordEndpointChange } from './endpoint-record.ts';
import { publish } from './publish.ts';
import { failPendingOf, type WebhookEndpoint } from './store.ts';
import { webhooksOf } from './webhooks.ts';

export type DisabledReason = NonNullable<WebhookEndpoint['disabled_reason']>;

/** Published to the other endpoints of the owner. */
export const ENDPOINT_DISABLED_EVENT = 'webhook.endpoint.disabled';

/**
 * Disables an endpoint, fails what waits for it and tells the owner's other endpoints, in the caller's transaction. False
 * when it was disabled already or, for `continuous_failure`, when a request has succeeded in the meantime.
 */
export async function disableEndpoint(tx: Db, id: string, reason: DisabledReason): Promise<boolean> {
  const { clock, log, settings } = webhooksOf(tx);
  const now = clock.now();
  const failingBefore = reason === 'continuous_failure' ? new Date(now.getTime() - settings.disableAfterMs) : null;
  const [endpoint] = await tx.query<WebhookEndpoint>(
    `update webhook_endpoints set is_active = $2, disabled_reason = $3, disabled_at = $4, updated_at = $4
     where id = $1 and is_active${failingBefore === null ? '' : ' and failing_since <= $5'} returning *`,
    [id, false, reason, now, ...(failingBefore === null ? [] : [failingBefore])],
  );
  if (endpoint === undefined) return false;
  const failed = await failPendingOf(tx, id, now);
  // By hand it is part of an edit, which has its entry.
  if (reason !== 'manual') await recordEndpointChange(tx, 'disabled', { before: stillActive(endpoint), after: endpoint }, BY_WORKER);
  log.warn({ endpoint_id: id, reason, failed_deliveries: failed }, 'a webhook endpoint was disabled');
  const { owner_id: owner, tenant_key: tenantKey } = endpoint;
  await publish(
    tx,
    ENDPOINT_DISABLED_EVENT,
    { endpoint_id: id, description: endpoint.description, reason, failing_since: endpoint.failing_since, disabled_at: now },
    tenantKey === '' ? { owner } : { owner, tenantKey },
  );
  return true;
}

const BY_WORKER = { by: 'webhook worker', requestId: null } as const;

/** As it was: the statement that disabled it changed these columns and no others that are shown. */
function stillActive(endpoint: WebhookEndpoint): WebhookEndpoint {
  return { ...endpoint, is_active: true, disabled_reason: null, disabled_at: null };
}

/** Enables an endpoint and clears its failures; what was missed is not sent by itself. False when there is no such endpoint. */
export async function enableEndpoint(tx: Db, id: string): Promise<boolean> {
  const now = webhooksOf(tx).clock.now();
  const rows = await tx.query(
    `update webhook_endpoints set is_active = $2, disabled_reason = null, disabled_at = null, failing_since = null,
       consecutive_failures = 0, updated_at = $3 where id = $1 returning id`,
    [id, true, now],
  );
  return rows.length === 1;
}
