import { rememberDeletedUser } from '../../auth/people/deleted-users.ts';
import { findUsers } from '../../auth/people/find-users.ts';
import type { UserDirectory } from '../../auth/people/user-directory.ts';
import type { UserChangeListener } from '../declare/registry.ts';

/** Remembers users who are deleted, in the transaction that deletes them. */
export function rememberDeleted(users: UserDirectory): UserChangeListener {
  return async (tx, userId) => {
    if ((await findUsers(tx, users.table, [userId])).has(userId)) return;
    await rememberDeletedUser(tx, userId, tx.database.clock.now());
  };
}
