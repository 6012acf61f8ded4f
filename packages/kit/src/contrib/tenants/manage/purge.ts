import { tenantOwner } from '../../../app/tenants/tenant-owner.ts';
import type { AuditEntry } from '../../../auth/request/audit-sink.ts';
import { eraseDue } from '../../../crud/subjects/erase-due.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { legalHoldOf, openErasure, requestErasure } from '../../../db/subjects/erasure-state.ts';
import type { Subject } from '../../../db/subjects/subject.ts';
import { tenantsIn } from '../declare/tenants.ts';
import { dueTenants, lockTenant, memberIdsOf } from '../rows/store.ts';
import { type ChangeContext, recordTenant } from './record-change.ts';

/** So many in one call. */
const PURGE_BATCH = 100;

/**
 * Erases tenants whose grace is over: every row that the models say is theirs, files, audit values, and at last the tenant. Returns how many are gone. A
 * process that is killed is continued by the next call; a legal hold keeps a tenant as it is, and one that fails does not keep the others.
 */
export async function purgeTenants(db: Db, context: ChangeContext = {}): Promise<number> {
  const { app, clock } = tenantsIn(db);
  for (const id of await dueTenants(db, clock.now(), PURGE_BATCH))
    await db.transaction((tx) => beginErasure(tx, { kind: 'tenant', id }, context), CONFLICT_RETRIES);
  return eraseDue(app, 'tenant', PURGE_BATCH);
}

async function beginErasure(tx: Db, subject: Subject, context: ChangeContext): Promise<void> {
  const { clock, registry } = tenantsIn(tx);
  const before = await lockTenant(tx, subject.id);
  // Restored, or erased by another process meanwhile.
  if (before === null || before.deletes_at === null || before.deletes_at > clock.now()) return;
  if ((await openErasure(tx, subject)) !== undefined || (await legalHoldOf(tx, subject)) !== undefined) return;
  // By the clock of the database, which erasures go by.
  await requestErasure(tx, subject, { dueAt: tx.clock.now(), by: actorText(context.by) });
  await recordTenant(tx, 'deleted', { before, after: null }, context);
  const change = { by: context.by ?? null, requestId: context.requestId ?? null };
  // What belongs to the tenant itself ends like what its members had there.
  for (const userId of [...(await memberIdsOf(tx, subject.id)), tenantOwner(subject.id)])
    for (const listener of registry.memberChanges) await listener(tx, { userId, tenant: subject.id }, change);
}

/** The id of the user behind an actor, or the name of the program. */
function actorText(by: AuditEntry['actor']): string | null {
  if (by === null || by === undefined || typeof by === 'string') return by ?? null;
  return 'user' in by ? by.user.id : by.id;
}
