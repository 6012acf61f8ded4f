import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { refuseUnknownNames } from '../../../options/read-options.ts';
import { accountErrors } from '../errors.ts';
import { createUser, type NewUser } from '../users/manage-users.ts';
import { startInvitation } from './send-link.ts';
import type { UserRow } from '../users/store.ts';
import { accountsOf } from '../users/accounts.ts';
import type { UserManagement } from '../users/user-management.ts';

const INVITED: ReadonlySet<string> = new Set(['username', 'email', 'is_staff', 'is_superuser']);

/** Creates a user without a password and sends the invitation to choose one, both or neither. */
export async function inviteUser(
  db: Db,
  user: Omit<NewUser, 'password' | 'email'> & {
    /** Where the invitation is sent. */
    readonly email: string;
  },
  management: UserManagement = accountsOf(db).management(null),
): Promise<UserRow> {
  refuseUnknownNames('inviteUser()', user, INVITED);
  if (typeof user.email !== 'string' || user.email.trim() === '')
    throw accountErrors.invalid_user({
      detail: 'An invitation needs an e-mail address.',
      errors: [{ location: ['body', 'email'], code: 'required', message: 'Required' }],
    });
  return db.transaction(async (tx) => {
    const created = await createUser(tx, { ...user, password: null }, management);
    await startInvitation(tx, created, management.actor);
    return created;
  }, CONFLICT_RETRIES);
}
