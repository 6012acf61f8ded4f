import type { UserDirectory } from '../../../auth/people/user-directory.ts';
import { publicUser } from './manage-users.ts';
import { normalizeLogin } from './login-name.ts';
import { findUserById, findUserByLogin } from './store.ts';
import { isUuid } from '../../../db/values/uuid.ts';

/** The users of this module, as every other module sees them. */
export const accountsDirectory: UserDirectory = {
  table: {
    name: 'users',
    id: 'id',
    username: 'username',
    email: 'email',
    isActive: 'is_active',
    isStaff: 'is_staff',
    isSuperuser: 'is_superuser',
  },
  async findById(db, id) {
    const user = isUuid(id) ? await findUserById(db, id) : null;
    return user === null ? null : publicUser(user);
  },
  async findByLogin(db, login) {
    const user = await findUserByLogin(db, normalizeLogin(login));
    return user === null ? null : publicUser(user);
  },
};
