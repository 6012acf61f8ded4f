import type { AuditEntry } from '../../../auth/request/audit-sink.ts';
import type { Db } from '../../../db/engine/db.ts';
import { type ApiKey, apiKeyFacts, EVERY_TENANT } from '../key/api-key.ts';
import { keyChanged } from '../verify/invalidation.ts';
import { keyringOf } from '../verify/keyring.ts';

export type KeyChange = 'created' | 'updated' | 'rotated' | 'revoked';

/** Who changes a key, and in which request: for the audit entry. */
export interface ChangeContext {
  /** Who makes the change, for the audit entry. */
  readonly by?: AuditEntry['actor'];
  /** The request that asked for the change, for the audit entry. */
  readonly requestId?: string | null | undefined;
}

export const changeContextNames: Readonly<Record<keyof ChangeContext, true>> = { by: true, requestId: true };

/**
 * Everything that follows from a change, in its transaction: the audit entry, the event, and the word to every cache. Where the audit or
 * webhook module is not installed, that part is left out.
 */
export async function recordChange(
  tx: Db,
  change: KeyChange,
  { before, after }: { readonly before: ApiKey | null; readonly after: ApiKey },
  context: ChangeContext,
  metadata: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const { registry } = keyringOf(tx);
  const action = `api_key.${change}`;
  const tenant = after.tenant_id === EVERY_TENANT ? '' : (after.tenant_id ?? '');
  await registry.audit?.record(tx, [
    {
      actor: context.by ?? null,
      action,
      target_type: 'api_key',
      target_id: after.id,
      before: before === null ? null : apiKeyFacts(before),
      after: apiKeyFacts(after),
      request_id: context.requestId ?? null,
      tenant,
      metadata: { owner_id: after.owner_id, ...metadata },
    },
  ]);
  const data = { id: after.id, ...apiKeyFacts(after), ...metadata };
  await registry.events?.publish(tx, [{ type: action, data, owner: after.owner_id, ...(tenant === '' ? {} : { tenantKey: tenant }) }]);
  // A key that did not exist cannot be in a cache.
  if (change !== 'created') await keyChanged(tx, after.prefix);
}
