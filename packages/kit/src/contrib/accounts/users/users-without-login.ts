import type { UsersWithoutLogin } from '../../../auth/request/service-users.ts';
import { accountsOf } from './accounts.ts';
import { deleteUser, prepareUser } from './manage-users.ts';

/** Users of this module for programs: no password, and no address that a link could be sent to. */
export const usersWithoutLogin: UsersWithoutLogin = {
  async create(tx, username, { by, requestId }) {
    const insertIn = await prepareUser({ username }, accountsOf(tx).management(by, requestId));
    return insertIn(tx);
  },
  async remove(tx, id, { by, requestId }) {
    await deleteUser(tx, id, accountsOf(tx).management(by, requestId));
  },
};
