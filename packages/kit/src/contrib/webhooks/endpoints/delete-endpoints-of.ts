import type { UserChange } from '../../../app/declare/registry.ts';
import type { Db } from '../../../db/engine/db.ts';
import { deleteEndpoint, lockEndpoint } from './store.ts';
import { recordEndpointChange } from './endpoint-record.ts';

/** Deletes every endpoint of a user who is gone, with what waits for them, each with an audit entry. */
export async function deleteEndpointsOf(tx: Db, ownerId: string, change?: UserChange, tenantKey?: string): Promise<void> {
  const [ofTenant, values] = tenantKey === undefined ? ['', [ownerId]] : [' and tenant_key = $2', [ownerId, tenantKey]];
  const rows = await tx.query<{ id: string }>(`select id from webhook_endpoints where owner_id = $1${ofTenant} order by id`, values);
  for (const { id } of rows) {
    const before = await lockEndpoint(tx, id);
    if (before === null || !(await deleteEndpoint(tx, id))) continue;
    const by = change?.by ?? 'webhooks';
    await recordEndpointChange(tx, 'deleted', { before, after: null }, { by, requestId: change?.requestId ?? null });
  }
}
