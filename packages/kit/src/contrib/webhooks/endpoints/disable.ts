import type { Db } from '../../../db/engine/db.ts';
import { announcedWrite } from '../publishing/announced-write.ts';
import { recordEndpointChange } from './endpoint-record.ts';
import { isOperators } from '../publishing/audience.ts';
import { publish } from '../publishing/publish.ts';
import { changeEndpoint, failPendingOf, hasSucceededSince, lockEndpoint, type WebhookEndpoint } from './store.ts';
import { webhooksOf } from '../webhooks.ts';
import { readOptions } from '../../../options/read-options.ts';
import { text } from '../../../options/value-rule.ts';

export type DisabledReason = NonNullable<WebhookEndpoint['disabled_reason']>;

/** Published to the other endpoints of the owner. */
export const ENDPOINT_DISABLED_EVENT = 'webhook.endpoint.disabled';

export interface DisableOptions {
  /** Where the receiver that is the reason was asked; what it said counts for no other URL. */
  readonly url?: string;
}

/**
 * Disables an endpoint, fails what waits for it and tells the owner's other endpoints, in the caller's transaction. False
 * when it was disabled already, when its URL is another by now or, for `continuous_failure`, when a request has succeeded in the meantime.
 */
export async function disableEndpoint(tx: Db, id: string, reason: DisabledReason, options: DisableOptions = {}): Promise<boolean> {
  const { url } = readOptions('disableEndpoint()', options, { url: text });
  return (await disableCounting(tx, id, reason, url)) !== null;
}

/** As `disableEndpoint`; returns how many waiting deliveries failed, null when the endpoint was left as it is. */
export async function disableCounting(tx: Db, id: string, reason: DisabledReason, url?: string): Promise<number | null> {
  const { clock, log, settings } = webhooksOf(tx);
  const now = clock.now();
  const endpoint = await lockEndpoint(tx, id);
  if (endpoint?.is_active !== true || (url !== undefined && url !== endpoint.url)) return null;
  if (reason === 'continuous_failure') {
    const { failing_since: since } = endpoint;
    if (since === null || now.getTime() - since.getTime() < settings.disableAfterMs) return null;
    // Results of two workers may be written in another order than they came in: what was delivered meanwhile is the proof.
    if (await hasSucceededSince(tx, id, since)) {
      await changeEndpoint(tx, id, { failing_since: now, consecutive_failures: 1 }, endpoint.updated_at);
      return null;
    }
  }
  const changes = { is_active: false, disabled_reason: reason, disabled_at: now };
  await announcedWrite(tx, 'webhook_endpoints', (db) => changeEndpoint(db, id, changes, now));
  const failed = await announcedWrite(tx, 'webhook_deliveries', (db) => failPendingOf(db, id, now));
  // PostgreSQL: a result or an event that was written at the same time saw an active endpoint, and was not seen here. It would wait for its time.
  if (tx.dialect === 'postgres')
    tx.afterCommit(() => announcedWrite(tx.database, 'webhook_deliveries', (db) => failPendingOf(db, id, clock.now())));
  // By hand it is part of an edit, which has its entry.
  if (reason !== 'manual')
    await recordEndpointChange(tx, 'disabled', { before: endpoint, after: { ...endpoint, ...changes, updated_at: now } }, BY_WORKER);
  log.warn({ endpoint_id: id, reason, failed_deliveries: failed }, 'a webhook endpoint was disabled');
  const { owner_id: owner, tenant_key: tenantKey } = endpoint;
  // The operator's own endpoints have no owner to inform.
  if (isOperators({ owner, tenantKey })) return failed;
  await publish(
    tx,
    ENDPOINT_DISABLED_EVENT,
    { endpoint_id: id, description: endpoint.description, reason, failing_since: endpoint.failing_since, disabled_at: now },
    tenantKey === '' ? { owner } : { owner, tenantKey },
  );
  return failed;
}

const BY_WORKER = { by: 'webhook worker', requestId: null } as const;

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
