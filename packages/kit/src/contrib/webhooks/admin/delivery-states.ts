// The states of a delivery as operators see them, and the rows that have them.
import { adminCount } from '../../../app/admin/each.ts';
import type { AdminState } from '../../../app/admin/shapes.ts';
import type { Db } from '../../../db/engine/db.ts';
import { whereSql } from '../../../db/sql/where/where-sql.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import { rareWhere } from '../../../crud/staff/rare-where.ts';
import type { FailureReason } from '../delivery/delivery-outcome.ts';
import { waitsInOrder } from '../endpoints/held-store.ts';
import type { WebhookDelivery } from '../endpoints/store.ts';

const LABELS = {
  waiting: 'Waiting (not finished)',
  pending: 'Pending',
  retrying: 'Retrying',
  held: 'Held',
  no_audience: 'No audience',
  succeeded: 'Succeeded',
  failed: 'Failed',
} as const;

/** The filter has the states that the list shows, and all that are not finished. */
export const stateChoices = Object.entries(LABELS).map(([value, label]) => ({ value, label }));

/** What failed, in words. */
export const FAILURES: Readonly<Record<FailureReason, string>> = {
  http_status: 'HTTP status',
  timeout: 'Timeout',
  connection: 'Connection',
  tls: 'TLS',
  blocked_address: 'Blocked address',
  audience_changed: 'Audience changed',
  endpoint_disabled: 'Endpoint disabled',
  secret_unavailable: 'Secret unavailable',
  payload: 'Payload',
};

export function reasonOf(reason: FailureReason | null): string | null {
  return reason === null ? null : FAILURES[reason];
}

type Shown = Pick<WebhookDelivery, 'status' | 'attempts' | 'failure_reason' | 'last_error' | 'ordering_key' | 'next_attempt_at'>;

export function deliveryState(delivery: Shown, isHeld: boolean): AdminState {
  const { status, attempts, failure_reason, last_error, ordering_key, next_attempt_at } = delivery;
  if (status === 'succeeded') return { value: 'succeeded', tone: 'good' };
  if (status === 'failed')
    return { value: 'failed', tone: 'bad', hint: last_error ?? reasonOf(failure_reason) ?? 'It is not retried automatically.' };
  if (next_attempt_at === null) return { value: 'no audience', tone: 'warning', hint: 'Its event has no audience. Assign one to send it.' };
  if (isHeld) return { value: 'held', tone: 'warning', hint: `Waits for an earlier delivery with the ordering key ${ordering_key ?? ''}.` };
  if (attempts === 0) return { value: 'pending', tone: 'info' };
  return {
    value: 'retrying',
    tone: 'warning',
    hint: `${adminCount(attempts, ['attempt', 'attempts'])} failed: ${last_error ?? reasonOf(failure_reason) ?? 'no reason was recorded.'}`,
  };
}

const HELD = `(this.ordering_key is not null and ${waitsInOrder('this')})`;
const DUE = "this.status = 'pending' and this.next_attempt_at is not null";

const PENDING: Readonly<Record<string, string>> = {
  waiting: DUE,
  pending: `${DUE} and this.attempts = 0 and not ${HELD}`,
  retrying: `${DUE} and this.attempts > 0 and not ${HELD}`,
  held: `${DUE} and ${HELD}`,
  no_audience: "this.status = 'pending' and this.next_attempt_at is null",
};

const TABLE = 'webhook_deliveries';
// In the words of the partial indexes: see models.ts.
const UNFINISHED = ["status = 'pending' and ordering_key is null", "status = 'pending' and ordering_key is not null"];

/** Deliveries that are not finished, and those that failed, are found by partial indexes; among a million others they are few. */
export async function stateWhere(db: Db, state: string): Promise<Where> {
  const pending = PENDING[state];
  if (pending !== undefined) return rareWhere(db, TABLE, pending, UNFINISHED);
  return whereSql(state === 'failed' ? "this.status = 'failed'" : "this.status = 'succeeded'") as Where;
}

/** Deliveries with this failure: the last one of a delivery that is retried, or of one that failed. */
export async function reasonWhere(db: Db, reason: string): Promise<Where> {
  const unfinished = await rareWhere(db, TABLE, "this.status <> 'succeeded'", ["status = 'failed'", ...UNFINISHED]);
  return { and: [{ failure_reason: reason }, unfinished] } as Where;
}
