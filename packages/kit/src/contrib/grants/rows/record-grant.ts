import type { AuditEntry } from '../../../auth/request/audit-sink.ts';
import type { EventEntry } from '../../../app/declare/registry.ts';
import type { Db } from '../../../db/engine/db.ts';
import { grantsState } from '../declare/grants-state.ts';
import type { GrantRow } from './store.ts';
import { shownActions } from '../declare/stored-actions.ts';
import { parseSubject } from '../declare/subject.ts';

/** Who changes grants, and in which request: for the audit entry and `granted_by`. */
export interface GrantChange {
  /** Who makes the change, for the audit entry. */
  readonly by?: AuditEntry['actor'];
  /** The request that asked for the change, for the audit entry. */
  readonly requestId?: string | null | undefined;
}

/** The same row as `before` and `after`: nothing was changed. */
export interface ChangedGrant {
  readonly before: GrantRow | null;
  readonly after: GrantRow | null;
}

/** Everything that follows from changes, in their transaction: one audit entry and one event each. */
export async function recordGrants(tx: Db, given: readonly ChangedGrant[], { by, requestId }: GrantChange): Promise<void> {
  const changes = given.filter(({ before, after }) => before !== after);
  if (changes.length === 0) return;
  const { registry } = grantsState.of(tx);
  await registry.audit?.record(
    tx,
    changes.map(({ before, after }) => ({
      actor: by ?? null,
      action: after === null ? 'grant.revoked' : 'grant.created',
      target_type: 'grant',
      target_id: ((after ?? before) as GrantRow).id,
      before: before === null ? null : grantFacts(before),
      after: after === null ? null : grantFacts(after),
      request_id: requestId ?? null,
      tenant: ((after ?? before) as GrantRow).tenant_key,
    })),
  );
  const events = changes.flatMap(({ before, after }) => eventOf((after ?? before) as GrantRow, after === null));
  await registry.events?.publish(tx, events);
}

export function grantFacts(row: GrantRow): object {
  const { set, actions } = shownActions(row.actions);
  return {
    subject: row.subject,
    object_type: row.object_type,
    object_id: row.object_id,
    ...(set === null ? { actions } : { set }),
    expires_at: row.expires_at?.toISOString() ?? null,
    granted_by: row.granted_by,
  };
}

/** Told to the user it is for; of a group or a wide subject to the tenant, else to the user who granted it. */
function eventOf(row: GrantRow, isRevoked: boolean): EventEntry[] {
  const subject = parseSubject(row.subject);
  const owner = subject?.kind === 'user' ? subject.id : undefined;
  const audience =
    owner !== undefined
      ? { owner }
      : row.tenant_key !== ''
        ? { tenantKey: row.tenant_key }
        : row.granted_by !== null
          ? { owner: row.granted_by }
          : undefined;
  if (audience === undefined) return [];
  const type = isRevoked ? 'grant.revoked' : 'grant.created';
  return [{ type, data: { id: row.id, ...grantFacts(row) }, ...audience, orderingKey: `grant:${row.id}` }];
}

/** The id of the user behind an actor, or the name of the program. */
export function actorText(by: AuditEntry['actor']): string | null {
  if (by === null || by === undefined || typeof by === 'string') return by ?? null;
  return 'user' in by ? by.user.id : by.id;
}
