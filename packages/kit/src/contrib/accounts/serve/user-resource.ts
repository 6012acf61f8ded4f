import type { Principal } from '../../../auth/people/principal.ts';
import { resource } from '../../../crud/checks/declare-resource.ts';
import { STAFF, type WriteContext } from '../../../crud/declare/resource.ts';
import type { Db } from '../../../db/engine/db.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { hasRecentLogin } from '../../../permissions/built-ins.ts';
import { accountErrors } from '../errors.ts';
import { removeSecondFactor } from '../factors/second-factor.ts';
import { startInvitation, startReset } from '../mail/send-link.ts';
import { users } from '../models.ts';
import { accountsOf } from '../users/accounts.ts';
import { identitiesOf } from '../users/identity-store.ts';
import { activateUser, changeStaff, deactivateUser, deleteUser } from '../users/manage-users.ts';
import { lockUser, type UserRow } from '../users/store.ts';
import type { UserManagement } from '../users/user-management.ts';

type Action = WriteContext & { readonly row: { readonly id: string } };

/** What all actions on users have: staff run them, and the functions of this module lock the user themselves. */
const OF_STAFF = { audience: STAFF, lock: false } as const;

/** Users as staff see them. The functions of this module write them. */
export const userResource = resource(users, {
  changes: 'trigger',
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
  actions: {
    'send-reset': {
      ...OF_STAFF,
      permission: hasRecentLogin,
      summary: 'Send a user a link to set a new password',
      async run({ row, tx, ...context }) {
        const user = await requireChangeable(tx, context.principal, row.id, false);
        if (!hasPasswordAndAddress(user)) throw accountErrors.user_not_found({ detail: 'The user has no password or no e-mail address.' });
        await startReset(tx, user.username);
        await recordMail(tx, context, user, 'user.reset_sent');
      },
    },
    'send-invitation': {
      ...OF_STAFF,
      permission: hasRecentLogin,
      summary: 'Send a user the invitation again',
      async run({ row, tx, ...context }) {
        if (accountsOf(tx).settings.signUp !== 'invitation') throw accountErrors.sign_up_closed();
        const user = await requireChangeable(tx, context.principal, row.id, false);
        if (!isInvited(user) || (await logsInElsewhere(tx, user)))
          throw accountErrors.user_not_found({ detail: 'The user has a password, logs in elsewhere, or has no e-mail address.' });
        await startInvitation(tx, user, context.principal);
        await recordMail(tx, context, user, 'user.invitation_sent');
      },
    },
    'reset-factor': {
      ...OF_STAFF,
      permission: hasRecentLogin,
      summary: 'Remove the second factor of a user',
      async run({ row, tx, principal, requestId }) {
        const user = await requireChangeable(tx, principal, row.id, true);
        if (!(await removeSecondFactor(tx, user, { actor: principal, request_id: requestId })))
          throw accountErrors.no_second_factor({ detail: `${user.username} has no second factor.` });
      },
    },
    activate: {
      ...OF_STAFF,
      on: 'selection',
      summary: 'Activate a user',
      run: (context) => change(context, false, activateUser),
    },
    deactivate: {
      ...OF_STAFF,
      on: 'selection',
      summary: 'Deactivate a user',
      run: (context) => change(context, true, deactivateUser),
    },
    'make-staff': {
      ...OF_STAFF,
      on: 'selection',
      permission: hasRecentLogin,
      summary: 'Make a user staff',
      run: (context) => change(context, false, (tx, id, management) => changeStaff(tx, id, true, management)),
    },
    'remove-staff': {
      ...OF_STAFF,
      on: 'selection',
      summary: 'Remove a user from the staff',
      run: (context) => change(context, true, (tx, id, management) => changeStaff(tx, id, false, management)),
    },
  },
});

async function change(
  { row, tx, principal, requestId }: Action,
  takesAway: boolean,
  work: (tx: Db, id: string, management: UserManagement) => Promise<UserRow>,
): Promise<void> {
  await requireChangeable(tx, principal, row.id, takesAway);
  await work(tx, row.id, accountsOf(tx).management(principal, requestId));
}

async function recordMail(
  tx: Db,
  { principal, requestId }: Pick<WriteContext, 'principal' | 'requestId'>,
  { id }: UserRow,
  action: string,
): Promise<void> {
  const entry = { actor: principal, action, target_type: 'user', target_id: id, request_id: requestId };
  await accountsOf(tx).audit()?.record(tx, [entry]);
}

export function hasPasswordAndAddress(user: UserRow): boolean {
  return user.is_active && user.email !== null && user.password_hash !== null;
}

/** A user who has no password yet: the invitation was not used, has expired, or has ended with the rights of who sent it. */
export function isInvited(user: UserRow): boolean {
  return user.is_active && user.email !== null && user.password_hash === null;
}

export async function logsInElsewhere(db: Db, { id }: UserRow): Promise<boolean> {
  return (await identitiesOf(db, id, 1)).length > 0;
}

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
