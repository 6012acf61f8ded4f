import { randomBytes } from 'node:crypto';
import { currentTransactionOn } from '../../db/engine/ambient.ts';
import type { ServiceMembers, UsersWithoutLogin } from '../../auth/request/service-users.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { InstanceContext } from './instance.ts';
import { findMembership, lockOrganization, stored } from './store.ts';
import { passOnChanges } from './user-changes.ts';

/** No host has this name (RFC 2606): no mail arrives, and no login of another service has such an address. */
const ADDRESS_AT = 'service.invalid';

/** Users of better-auth without an account to log in with. */
export function usersWithoutLogin(context: () => InstanceContext): UsersWithoutLogin {
  return {
    async create(tx, username) {
      const { internalAdapter } = context() as unknown as {
        readonly internalAdapter: { createUser(user: object): Promise<{ readonly id: string }> };
      };
      if (currentTransactionOn(tx.database) === undefined) throw new Error('A service user is created in a transaction of the app.');
      return internalAdapter.createUser({ email: `${username}@${ADDRESS_AT}`, name: username, emailVerified: false });
    },
    async remove(tx, id, { by }) {
      await tx.query('delete from "user" where "id" = $1', [id]);
      await passOnChanges(tx, by ?? 'better-auth');
    },
  };
}

/** Service users as members of organizations. */
export const serviceMembers: ServiceMembers = {
  async add(tx, { tenant, userId, role }, { by }) {
    if (!(await lockOrganization(tx, tenant))) throw coreErrors.not_a_member();
    const actor = typeof by === 'object' && by !== null ? ('user' in by ? by.user.id : by.id) : null;
    const roles = actor === null ? null : ((await findMembership(tx, actor, tenant))?.roles ?? '').split(',');
    // Who manages an organization gives every role but the owner's; nobody could act as that owner.
    if (role === 'owner' || role.includes(',') || role.trim() !== role) throw invalidRole();
    if (roles !== null && !roles.some((each) => each === 'owner' || each === 'admin')) throw coreErrors.permission_denied();
    await tx.query(`insert into "member" ("id", "organizationId", "userId", "role", "createdAt") values ($1, $2, $3, $4, $5)`, [
      randomBytes(16).toString('hex'),
      tenant,
      userId,
      role,
      stored(tx, tx.clock.now()),
    ]);
  },
  async remove(tx, { tenant, userId }, { by }) {
    await tx.query('delete from "member" where "organizationId" = $1 and "userId" = $2', [tenant, userId]);
    await passOnChanges(tx, by ?? 'better-auth');
  },
};

function invalidRole() {
  const message = "Choose one role that is not the owner's.";
  return coreErrors.validation_error({ errors: [{ location: ['body', 'role'], code: 'invalid_role', message }] });
}
