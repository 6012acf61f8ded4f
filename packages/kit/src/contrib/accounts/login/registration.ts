import type { UserRegistration } from '../../../auth/people/user-registration.ts';
import { accountsOf } from '../users/accounts.ts';
import { prepareUser, publicUser } from '../users/manage-users.ts';

/** Users who create their own account with an invitation of another module. */
export const accountsRegistration: UserRegistration = {
  async prepare(db, person, { requestId }) {
    const insertIn = await prepareUser(person, accountsOf(db).management('invitation', requestId));
    return async (tx) => publicUser(await insertIn(tx));
  },
};
