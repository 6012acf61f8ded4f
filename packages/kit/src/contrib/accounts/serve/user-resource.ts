import type { Principal } from '../../../auth/people/principal.ts';
import { resource } from '../../../crud/checks/declare-resource.ts';
import type { Db } from '../../../db/engine/db.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { accountErrors } from '../errors.ts';
import { users } from '../models.ts';
import { accountsOf } from '../users/accounts.ts';
import { deleteUser } from '../users/manage-users.ts';
import { lockUser, type UserRow } from '../users/store.ts';

/** Users as staff see them. The functions of this module write them. */
export const userResource = resource(users, {
  name: 'user',
  admin: { rows: true },
  writes: 'verbs',
  computed: {
    state: {
      requires: ['is_active'],
      response: jsonSchema<'active' | 'deactivated'>({ type: 'string', enum: ['active', 'deactivated'] }),
      value: ({ is_active: isActive }) => (isActive ? 'active' : 'deactivated'),
    },
    roles: {
      requires: ['is_staff', 'is_superuser'],
      response: jsonSchema<string[]>({ type: 'array', items: { type: 'string' } }),
      value: ({ is_staff: isStaff, is_superuser: isSuperuser }) => [...(isStaff ? ['staff'] : []), ...(isSuperuser ? ['superuser'] : [])],
    },
  },
  hooks: {
    async destroy({ before, tx, principal, requestId }) {
      await requireChangeable(tx, principal, before.id, true);
      await deleteUser(tx, before.id, accountsOf(tx).management(principal, requestId));
    },
  },
});

/** Users cannot lock themselves out, and only a superuser changes a superuser: else staff could take the site from its owners. */
export async function requireChangeable(tx: Db, actor: Principal | null, id: string, takesAway: boolean): Promise<UserRow> {
  const user = isUuid(id) ? await lockUser(tx, id) : null;
  if (user === null) throw accountErrors.user_not_found();
  if (takesAway && user.id === actor?.user.id)
    throw accountErrors.own_account({ detail: `${user.username} is your own account; another staff member has to do this.` });
  if (user.is_superuser && actor?.user.is_superuser !== true)
    throw accountErrors.superuser_only({ detail: `${user.username} is a superuser; only a superuser may change that account.` });
  return user;
}
