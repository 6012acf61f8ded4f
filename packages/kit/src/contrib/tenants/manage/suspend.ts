import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { refuseUnknownNames, requireArguments } from '../../../options/read-options.ts';
import { filledText, queryable } from '../../../options/value-rule.ts';
import { tenantsIn } from '../declare/tenants.ts';
import { tenantErrors } from '../errors.ts';
import { SUSPENDED_REASON_MAX } from '../models.ts';
import { lockTenant, type TenantRow, updateTenantRow } from '../rows/store.ts';
import { changeContextNames, type ChangeContext, recordTenant } from './record-change.ts';

export interface Suspension extends ChangeContext {
  /** For the members of the tenant. Default: none. */
  readonly reason?: string | undefined;
}

const CONTEXT_NAMES: ReadonlySet<string> = new Set(Object.keys(changeContextNames));
const NAMES: ReadonlySet<string> = new Set(Object.keys({ ...changeContextNames, reason: true } satisfies Record<keyof Suspension, true>));

/**
 * Nobody can work in the tenant until `resumeTenant()`: requests and API keys get 403 `tenant_suspended`, streams end, deliveries of webhooks and jobs wait.
 * For programs and staff; suspending a suspended tenant replaces the reason.
 */
export async function suspendTenant(db: Db, id: string, suspension: Suspension = {}): Promise<TenantRow> {
  refuseUnknownNames('suspendTenant()', suspension, NAMES);
  requireArguments('suspendTenant()', { db, id }, { db: queryable, id: filledText });
  const { reason, ...context } = suspension;
  return change(db, id, context, 'suspended', ({ suspended_at }, now) => ({
    suspended_at: suspended_at ?? now,
    suspended_reason: reason === undefined || reason.trim() === '' ? null : cut(reason.trim()),
  }));
}

/** Everything that waits goes on, within a minute. */
export async function resumeTenant(db: Db, id: string, context: ChangeContext = {}): Promise<TenantRow> {
  refuseUnknownNames('resumeTenant()', context, CONTEXT_NAMES);
  requireArguments('resumeTenant()', { db, id }, { db: queryable, id: filledText });
  return change(db, id, context, 'resumed', () => ({ suspended_at: null, suspended_reason: null }));
}

async function change(
  db: Db,
  id: string,
  context: ChangeContext,
  what: 'suspended' | 'resumed',
  changes: (before: TenantRow, now: Date) => Pick<TenantRow, 'suspended_at' | 'suspended_reason'>,
): Promise<TenantRow> {
  const { clock } = tenantsIn(db);
  return db.transaction(async (tx) => {
    const before = await lockTenant(tx, id);
    if (before === null) throw tenantErrors.tenant_not_found();
    const wanted = changes(before, clock.now());
    const isSame = (before.suspended_at === null) === (wanted.suspended_at === null) && before.suspended_reason === wanted.suspended_reason;
    if (isSame) return before;
    const after = await updateTenantRow(tx, before.id, { ...wanted, updated_at: clock.now() });
    await recordTenant(tx, what, { before, after }, context);
    return after;
  }, CONFLICT_RETRIES);
}

/** By code points, as the column counts. */
function cut(text: string): string {
  return Array.from(text).slice(0, SUSPENDED_REASON_MAX).join('');
}
