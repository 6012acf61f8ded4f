import { jsonValue } from '../../../db/values/json-value.ts';
import type { AuditEntry } from '../../../auth/request/audit-sink.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookEvent } from './store.ts';
import type { SignatureVersion } from '../signing/signature.ts';
import { webhooksOf, type Webhooks } from '../webhooks.ts';
import { signatureOf } from './endpoint-secret.ts';

/** An endpoint as its owner sees it: everything but the secrets. */
export interface EndpointRecord {
  readonly id: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly description: string;
  readonly is_active: boolean;
  readonly tenant_key: string;
  readonly disabled_reason: string | null;
  readonly disabled_at: string | null;
  readonly failing_since: string | null;
  readonly consecutive_failures: number;
  /** Null only where the secret cannot be read. */
  readonly signature: SignatureVersion | null;
  readonly public_key: string | null;
  readonly schedule: readonly number[] | null;
  readonly header_names: readonly string[];
  readonly rate_limit: string | null;
  readonly send_traceparent: boolean;
  readonly previous_secret_expires_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

export function endpointRecord(webhooks: Webhooks, endpoint: WebhookEndpoint): EndpointRecord {
  const { id, url, events, description, is_active, tenant_key, disabled_reason, consecutive_failures, schedule, rate_limit } = endpoint;
  return {
    id,
    url,
    events,
    description,
    is_active,
    tenant_key,
    disabled_reason,
    disabled_at: iso(endpoint.disabled_at),
    failing_since: iso(endpoint.failing_since),
    consecutive_failures,
    ...signatureOf(webhooks, endpoint),
    schedule,
    header_names: endpoint.header_names ?? [],
    rate_limit,
    send_traceparent: endpoint.send_traceparent,
    previous_secret_expires_at: iso(endpoint.previous_secret_expires_at),
    created_at: endpoint.created_at.toISOString(),
    updated_at: endpoint.updated_at.toISOString(),
  };
}

export interface DeliveryRecord {
  readonly id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly status: WebhookDelivery['status'];
  readonly attempts: number;
  readonly next_attempt_at: string | null;
  readonly last_status_code: number | null;
  readonly last_error: string | null;
  readonly failure_reason: string | null;
  readonly delivered_at: string | null;
  readonly created_at: string;
}

export function deliveryRecord(delivery: WebhookDelivery): DeliveryRecord {
  const { id, event_id, event_type, status, attempts, last_status_code, last_error, failure_reason } = delivery;
  return {
    id,
    event_id,
    event_type,
    status,
    attempts,
    next_attempt_at: iso(delivery.next_attempt_at),
    last_status_code,
    last_error,
    failure_reason,
    delivered_at: iso(delivery.delivered_at),
    created_at: delivery.created_at.toISOString(),
  };
}

export interface AttemptRecord {
  readonly id: string;
  readonly started_at: string;
  readonly duration_ms: number;
  readonly status_code: number | null;
  readonly failure_reason: string | null;
  readonly error: string | null;
  readonly response_excerpt: string | null;
  readonly worker: string;
}

export interface DeliveryDetail extends DeliveryRecord {
  /** The body as it is sent; `data` is null where what is stored is not JSON, which is never sent. */
  readonly payload: { readonly type: string; readonly timestamp: string; readonly data: object | null };
  readonly attempt_history: readonly AttemptRecord[];
}

export function deliveryDetail(delivery: WebhookDelivery, event: WebhookEvent, attempts: readonly WebhookAttempt[]): DeliveryDetail {
  return {
    ...deliveryRecord(delivery),
    payload: { type: event.type, timestamp: event.timestamp.toISOString(), data: eventData(event) },
    attempt_history: attempts.map(attemptRecord),
  };
}

/** The data of an event; null where what is stored is not a JSON object. */
export function eventData({ data }: Pick<WebhookEvent, 'data'>): object | null {
  try {
    const value: unknown = jsonValue(data);
    return typeof value === 'object' && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

function attemptRecord(attempt: WebhookAttempt): AttemptRecord {
  const { id, started_at, duration_ms, status_code, failure_reason, error, response_excerpt } = attempt;
  const worker = publicName(attempt.worker);
  return { id, started_at: started_at.toISOString(), duration_ms, status_code, failure_reason, error, response_excerpt, worker };
}

/** Of a name that the worker gave itself only the random part: host names are often internal addresses (`ip-10-0-3-17`). */
function publicName(worker: string): string {
  return /:\d+:([0-9a-f]{6})$/.exec(worker)?.[1] ?? worker;
}

/** The audit entry of a change, in its transaction. Nothing where the audit module is not installed. */
export async function recordEndpointChange(
  tx: Db,
  change: 'created' | 'updated' | 'secret_rotated' | 'deleted' | 'disabled',
  { before, after }: { readonly before: WebhookEndpoint | null; readonly after: WebhookEndpoint | null },
  { by, requestId }: { readonly by: AuditEntry['actor']; readonly requestId: string | null },
): Promise<void> {
  const endpoint = after ?? before;
  if (endpoint === null) return;
  const webhooks = webhooksOf(tx);
  await webhooks.registry.audit?.record(tx, [
    {
      actor: by ?? null,
      action: `webhook_endpoint.${change}`,
      target_type: 'webhook_endpoint',
      target_id: endpoint.id,
      before: before === null ? null : endpointRecord(webhooks, before),
      after: after === null ? null : endpointRecord(webhooks, after),
      request_id: requestId,
      tenant: endpoint.tenant_key,
      metadata: { owner_id: endpoint.owner_id },
    },
  ]);
}

function iso(date: Date | null): string | null {
  return date === null ? null : date.toISOString();
}
