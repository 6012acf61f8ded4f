import type { MemberChangeListener } from '../../../app/declare/registry.ts';
import { keysInTenant } from '../rows/store.ts';
import { keyrings } from '../verify/keyring.ts';
import { revokeApiKey } from './revoke.ts';

/** Keys that are bound to a tenant end with the membership of their owner. */
export const ownerLeft: MemberChangeListener = async (tx, { userId, tenant }, change) => {
  // A program that opens the database without the app.
  if (keyrings.find(tx) === undefined) return;
  for (const id of await keysInTenant(tx, userId, tenant))
    await revokeApiKey(tx, id, {
      reason: 'The owner is no longer a member of the tenant.',
      by: change?.by ?? null,
      requestId: change?.requestId,
    });
};
