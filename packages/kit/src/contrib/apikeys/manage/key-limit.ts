import type { Db } from '../../../db/engine/db.ts';
import type { ApiKey } from '../key/api-key.ts';
import { apiKeyErrors } from '../errors.ts';
import { keyringOf } from '../verify/keyring.ts';
import { couldBeUserId } from '../../../auth/people/user-table.ts';
import { keyState } from '../key/state.ts';
import { countKeys, lockOwner, type LockedOwner } from '../rows/store.ts';

/**
 * One more active key of an owner, or 409 `key_limit_reached`. Holds the owner's row until the end of the transaction, so that several at
 * once are counted one after the other. Answers the owner; null when there is no such user.
 */
export async function requireRoomForKey(tx: Db, ownerId: string, now: Date): Promise<LockedOwner | null> {
  const { statements, users, maxKeysPerOwner: limit } = keyringOf(tx);
  const owner = couldBeUserId(ownerId, users.table) ? await lockOwner(tx, statements, ownerId) : null;
  if (owner === null) return null;
  // Keys of an inactive owner count too: they all come back when the owner does.
  const state = owner.is_active ? 'active' : 'owner_inactive';
  if ((await countKeys(tx, statements, { ownerId: owner.id, state }, now)) >= limit) {
    throw apiKeyErrors.key_limit_reached({ detail: `At most ${limit} keys of one owner may be active.`, extensions: { limit } });
  }
  return owner;
}

/** A later expiry brings an expired key back: it needs room like a new one, or the limit could be walked around. */
export async function requireRoomToReturn(tx: Db, before: ApiKey, after: ApiKey, now: Date): Promise<void> {
  if (keyState(before, now) === 'expired' && keyState(after, now) !== 'expired') await requireRoomForKey(tx, before.owner_id, now);
}
