import type { UserChange } from '../../../app/declare/registry.ts';
import type { Db } from '../../../db/engine/db.ts';
import { apiKeyFacts } from '../key/api-key.ts';
import { keyringOf } from './keyring.ts';
import { deleteKeys } from '../rows/store.ts';

/** Deletes every key of a user who is gone, each with an audit entry. No event is sent: its recipient is gone. */
export async function deleteKeysOf(tx: Db, ownerId: string, change?: UserChange): Promise<void> {
  const { registry, statements } = keyringOf(tx);
  const deleted = await deleteKeys(tx, statements, ownerId);
  await registry.audit?.record(
    tx,
    deleted.map((key) => ({
      actor: change?.by ?? null,
      action: 'api_key.deleted',
      target_type: 'api_key',
      target_id: key.id,
      before: apiKeyFacts(key),
      after: null,
      request_id: change?.requestId ?? null,
      tenant: key.tenant_id,
      metadata: { owner_id: ownerId, reason: 'the owner was deleted' },
    })),
  );
}
