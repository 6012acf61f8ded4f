import type { UserChange } from '../../../app/declare/registry.ts';
import type { Database, Db } from '../../../db/engine/db.ts';
import type { KeyCache } from './cache.ts';
import { deleteKeysOf } from './delete-keys-of.ts';
import { keyringOf } from './keyring.ts';

/** Every process that caches keys of a database listens here. Payload: `key:<prefix>` or `owner:<id>`. */
const CHANNEL = 'kit_api_keys';

/**
 * To be called in the transaction that changes a key: this process forgets it as soon as the change is committed, before the caller goes
 * on; other processes are told by the database, in commit order. Sent whether or not this process caches: another one may.
 */
export async function keyChanged(tx: Db, prefix: string): Promise<void> {
  const { cache } = keyringOf(tx);
  tx.afterCommit(() => cache?.dropKey(prefix));
  await tx.database.notify(tx, CHANNEL, `key:${prefix}`);
}

/**
 * The same for a user who was deactivated, deleted or changed. The keys of a user that
 * the directory no longer finds are deleted: another user with the same id must not get them.
 */
export async function ownerChanged(tx: Db, ownerId: string, change?: UserChange): Promise<void> {
  const { cache, users } = keyringOf(tx);
  if ((await users.findById(tx, ownerId)) === null) await deleteKeysOf(tx, ownerId, change);
  tx.afterCommit(() => cache?.dropOwner(ownerId));
  await tx.database.notify(tx, CHANNEL, `owner:${ownerId}`);
}

/** Opens the cache once notifications arrive, and keeps it shut whenever they cannot. Resolves to the function that ends it. */
export async function followChanges(database: Database, cache: KeyCache): Promise<() => Promise<void>> {
  const stop = await database.listen(CHANNEL, (payload) => forget(cache, payload), {
    onDisconnect: () => cache.shut(),
    onReconnect: () => cache.open(),
  });
  cache.open();
  return async () => {
    cache.shut();
    await stop();
  };
}

function forget(cache: KeyCache, payload: string): void {
  if (payload.startsWith('key:')) cache.dropKey(payload.slice('key:'.length));
  else if (payload.startsWith('owner:')) cache.dropOwner(payload.slice('owner:'.length));
  // A newer version of this module may say things this one does not know.
  else cache.clear();
}
