import type { Clock } from '../../../db/clock.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { ERROR_LENGTH_MAX } from '../models.ts';
import type { Outcome } from './delivery-outcome.ts';
import type { Finalised, HealthChange } from './result-store.ts';
import type { Result } from './result-batch.ts';
import type { SendReport } from './sender.ts';

export function resultRow(report: SendReport, outcome: Outcome, clock: Clock): Finalised {
  const { claim, startedAt, durationMs, excerpt, result } = report;
  const { delivery } = outcome;
  return {
    id: claim.id,
    token: claim.token,
    endpoint_id: claim.endpoint.id,
    status: delivery.status,
    attempts: delivery.attempts,
    next_attempt_at: delivery.nextAttemptAt ?? undefined,
    status_code: delivery.lastStatusCode ?? undefined,
    error: delivery.lastError?.slice(0, ERROR_LENGTH_MAX).toWellFormed(),
    reason: delivery.failureReason ?? undefined,
    delivered_at: delivery.deliveredAt ?? undefined,
    attempt_id: result?.kind === 'refused' ? undefined : uuidv7(clock),
    started_at: startedAt,
    duration_ms: durationMs,
    excerpt: excerpt ?? undefined,
  };
}

/** In place of a result that the database rejects. */
export function bareFailureRow({ claim, startedAt }: SendReport, clock: Clock): Finalised {
  return {
    id: claim.id,
    token: claim.token,
    endpoint_id: claim.endpoint.id,
    status: 'failed',
    attempts: claim.attempts + 1,
    error: 'The result of the attempt could not be stored.',
    attempt_id: uuidv7(clock),
    started_at: startedAt,
    duration_ms: 0,
  };
}

/** One change per endpoint: a success forgets the failures before it, later failures count from there. */
export function healthChanges(results: readonly Result[]): HealthChange[] {
  const changed = new Set(results.flatMap(({ report, changesHealth }) => (changesHealth ? [report.claim.endpoint.id] : [])));
  if (changed.size === 0) return [];
  const changes = new Map<string, { id: string; succeeded_at: Date | null; failures: number; failing_since: Date | null }>();
  for (const { report, outcome } of results) {
    const { endpoint } = report.claim;
    if (outcome.health === null || !changed.has(endpoint.id)) continue;
    const change = changes.get(endpoint.id) ?? { id: endpoint.id, succeeded_at: null, failures: 0, failing_since: null };
    if (outcome.delivery.status === 'succeeded') Object.assign(change, { succeeded_at: report.endedAt, failures: 0, failing_since: null });
    else Object.assign(change, { failures: change.failures + 1, failing_since: change.failing_since ?? report.endedAt });
    changes.set(endpoint.id, change);
  }
  return [...changes.values()];
}
