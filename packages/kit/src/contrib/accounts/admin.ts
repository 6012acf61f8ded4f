import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import { isUuid } from '../../db/values/uuid.ts';
import { modelList, modelView } from '../../app/admin/model-list.ts';
import { adminDone, adminEach } from '../../app/admin/each.ts';
import type { AdminAction, AdminContext, AdminDeclaration, AdminResource } from '../../app/admin/declaration.ts';
import type { AdminField, AdminResult, AdminRow, AdminSection, AdminState, AdminWords } from '../../app/admin/shapes.ts';
import type { User } from '../../auth/people/principal.ts';
import type { Db } from '../../db/engine/db.ts';
import { accountsOf } from './users/accounts.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { accountErrors } from './errors.ts';
import { identitiesOf } from './users/identity-store.ts';
import { inviteUser } from './mail/invite-user.ts';
import { mailsResource } from './serve/mail-admin.ts';
import { sessions, userIdentities, users } from './models.ts';
import type { AccountsSettings } from './options.ts';
import { removeSecondFactor, secondFactorState } from './factors/second-factor.ts';
import { startInvitation, startReset } from './mail/send-link.ts';
import { activateUser, changeStaff, deactivateUser, deleteUser } from './users/manage-users.ts';
import type { UserManagement } from './users/user-management.ts';
import { groupsResource } from './serve/group-admin.ts';
import { groupsOfUser } from './users/group-store.ts';
import { countSessionsOf, findUserById, lockUser, openSessionsOf, type UserRow } from './users/store.ts';

type ShownUser = Omit<UserRow, 'password_hash'>;

const list = modelList(users, 'u', {
  columns: [
    { name: 'username', label: 'User name' },
    { name: 'email', label: 'E-mail', secondary: true },
    { name: 'state', kind: 'state' },
    { name: 'roles', kind: 'chips' },
    { name: 'created_at', label: 'Created', sortable: true, secondary: true },
  ],
});

const sessionView = modelView(sessions, [
  { name: 'created_at', label: 'Logged in' },
  { name: 'seen_at', label: 'Last seen' },
  { name: 'expires_at', label: 'Ends' },
  'device',
  { name: 'address', label: 'IP address', secondary: true },
  { name: 'id', secondary: true },
]);

const identityView = modelView(userIdentities, ['issuer', { name: 'subject', kind: 'code' }, { name: 'created_at', label: 'Since' }]);

const GROUPS_SHOWN = 100;
/** The newest; their number is among the facts. */
const SESSIONS_SHOWN = 10;
const IDENTITIES_SHOWN = 20;

const yesNo = [
  { value: 'yes', label: 'Yes' },
  { value: 'no', label: 'No' },
];

/** The admin site's lists of users and groups. */
export function accountsAdmin({ signUp, mail }: Pick<AccountsSettings, 'signUp' | 'mail'>): AdminDeclaration {
  const isInviting = signUp === 'invitation' && mail !== null;
  const sent = mail?.sent === undefined ? [] : [mailsResource(mail.sent)];
  return { resources: [usersResource({ isInviting, isMailing: mail !== null }), groupsResource(), ...sent] };
}

const invitation: { readonly fields: readonly AdminField[] } = {
  fields: [
    { name: 'username', label: 'User name', kind: 'text', required: true, maxLength: 150 },
    { name: 'email', label: 'E-mail', kind: 'text', required: true, maxLength: 254, help: 'The invitation is sent to this address.' },
  ],
};

function usersResource({ isInviting, isMailing }: { readonly isInviting: boolean; readonly isMailing: boolean }): AdminResource {
  return {
    name: 'users',
    label: 'Users',
    singular: 'user',
    group: 'Access',
    icon: 'user',
    auditedAs: 'user',
    table: 'users',
    columns: list.columns,
    filters: [
      { name: 'active', label: 'Active', kind: 'select', choices: yesNo },
      { name: 'staff', label: 'Staff', kind: 'select', choices: yesNo },
    ],
    searches: 'user name or e-mail',
    creation: isInviting
      ? invitation
      : { refused: "Invitations are not enabled. Use `kit user create` on the server, or accounts({ signUp: 'invitation', mail })." },
    needsPresence: ['create', 'make-staff', 'send-reset', 'send-invitation', 'reset-factor'],
    editable: false,
    removable: true,
    dryRunsRemoval: true,
    removal:
      'Sessions, memberships, API keys and grants are deleted with the user. Refused while other records refer to the user: deactivate the user instead. This cannot be undone.',
    actions: [
      ...(isMailing ? [sendReset] : []),
      ...(isInviting ? [sendInvitation] : []),
      resetFactor,
      userAction(activateUser, {
        name: 'activate',
        label: 'Activate',
        tone: 'neutral',
        participle: 'activated',
        confirm: {
          one: 'This user can log in again and their API keys work again. Sessions from before stay ended.',
          many: 'They can log in again and their API keys work again. Sessions from before stay ended.',
        },
      }),
      userAction(deactivateUser, {
        name: 'deactivate',
        label: 'Deactivate',
        tone: 'bad',
        participle: 'deactivated',
        confirm: {
          one: 'All sessions of this user end and their API keys stop working immediately.',
          many: 'All their sessions end and their API keys stop working immediately.',
        },
      }),
      userAction((db, id, management) => changeStaff(db, id, true, management), {
        name: 'make-staff',
        label: 'Make staff',
        tone: 'neutral',
        participle: 'made staff',
        confirm: {
          one: 'This user can use this site, and whatever else the application gives to staff.',
          many: 'They can use this site, and whatever else the application gives to staff.',
        },
      }),
      userAction((db, id, management) => changeStaff(db, id, false, management), {
        name: 'remove-staff',
        label: 'Remove staff',
        tone: 'bad',
        participle: 'no longer staff',
        confirm: {
          one: 'This user can no longer use this site, from the next request on.',
          many: 'They can no longer use this site, from their next request on.',
        },
      }),
    ],
    ...(isInviting ? { create: invite } : {}),
    async list({ db }, query) {
      const equals = ['username', 'email'].map((column) => ({ column, values: [query.search?.toLowerCase()] }));
      const search = { columns: ['username', 'email'], equals };
      const where = await list.conditions(db, query, { search, equals: { active: 'is_active', staff: 'is_staff' } });
      const columns = 'u.id, u.username, u.email, u.is_active, u.is_staff, u.is_superuser, u.created_at, u.updated_at';
      const { rows, ...page } = await list.rows<ShownUser>(db, query, where, { columns });
      return { items: rows.map(rowOf), ...page };
    },
    titles: ({ db }, ids) => list.titles(db, ids, 'username'),
    async read({ db, clock, principal, linkTo }, id) {
      const user = isUuid(id) ? await findUserById(db, id) : null;
      if (user === null) return null;
      const seenAfter = new Date(clock.now().getTime() - accountsOf(db).settings.sessionIdleMs);
      const openSessions = await countSessionsOf(db, user.id, clock.now(), seenAfter);
      const open = await openSessionsOf(db, user.id, clock.now(), seenAfter, SESSIONS_SHOWN);
      const factor = await secondFactorState(db, user.id);
      const identities = await identitiesOf(db, user.id, IDENTITIES_SHOWN);
      const memberships = await groupsOfUser(db, user.id, GROUPS_SHOWN);
      const row = rowOf(user);
      return {
        ...row,
        state: stateOf(user),
        sections: [
          list.facts(
            'Account',
            user,
            {
              ...row.values,
              password: user.password_hash === null ? 'not set: cannot log in with one' : 'set',
              second_factor: factor.confirmedAt === null ? 'not set up' : `one-time codes; ${factor.recoveryCodes} recovery codes left`,
              sessions: openSessions,
            },
            [
              { name: 'updated_at', label: 'Changed' },
              { name: 'password', kind: 'text' },
              { name: 'second_factor', kind: 'text' },
              { name: 'sessions', label: 'Open sessions', kind: 'number' },
              'id',
            ],
          ),
          {
            kind: 'table',
            title: 'Open sessions',
            columns: sessionView.columns,
            rows: open.map((session) => ({ id: session.id, title: session.id, values: sessionView.values(session) })),
            empty: 'Not logged in anywhere.',
          },
          {
            kind: 'table',
            title: 'Groups',
            columns: [{ name: 'group', label: 'Group', kind: 'link' }],
            rows: memberships.map((group) => ({
              id: group.id,
              title: group.name,
              values: { group: linkTo('group', group.id, group.name) },
            })),
            empty: 'In no group.',
          },
          ...(identities.length === 0 ? [] : [identitySection(identities)]),
        ],
        actions: [
          ...actionsOn(user, principal.user),
          ...(isMailing && canReset(user, principal.user) ? ['send-reset'] : []),
          ...(isInviting && identities.length === 0 && canInvite(user, principal.user) ? ['send-invitation'] : []),
          ...(factor.confirmedAt !== null && isChangeable(user, principal.user) ? ['reset-factor'] : []),
        ],
        removable: user.id !== principal.user.id && (principal.user.is_superuser || !user.is_superuser),
      };
    },
    async remove(context, id) {
      const management = accountsOf(context.db).management(context.principal, context.requestId);
      const { username } = await context.db.transaction(async (tx) => {
        await requireChangeable(tx, context, id, true);
        return deleteUser(tx, id, management);
      }, CONFLICT_RETRIES);
      return { message: `${username} is deleted.` };
    },
  };
}

async function invite({ db, principal, requestId }: AdminContext, fields: Readonly<Record<string, unknown>>): Promise<AdminResult> {
  const wanted = { username: String(fields['username']), email: String(fields['email']) };
  try {
    const user = await inviteUser(db, wanted, accountsOf(db).management(principal, requestId));
    return { message: `${user.username} is created; the invitation to ${user.email} is queued.`, id: user.id };
  } catch (error) {
    const field = { username_taken: 'username', email_taken: 'email' }[(error as { code?: string }).code ?? ''];
    if (field === undefined) throw error;
    const { code, detail } = error as { code: string; detail: string };
    throw coreErrors.validation_error({ errors: [{ location: ['body', field], code, message: detail }] });
  }
}

const sendReset: AdminAction = {
  name: 'send-reset',
  label: 'Send password link',
  tone: 'neutral',
  on: 'record',
  confirm: {
    one: 'A link to set a new password is sent to the address of this user. The old password works until the link is used.',
    many: 'A link to set a new password is sent to the address of each user. The old passwords work until the links are used.',
  },
  async run(context, ids) {
    const result = await adminEach(context, ids, (id) =>
      context.db.transaction(async (tx) => {
        const user = await requireChangeable(tx, context, id, false);
        if (!canReset(user, context.principal.user))
          throw accountErrors.user_not_found({ detail: 'The user has no password or no e-mail address.' });
        await startReset(tx, user.username);
        await recordMail(tx, context, user, 'user.reset_sent');
      }, CONFLICT_RETRIES),
    );
    return adminDone(result, ['user', 'users'], 'sent a link');
  },
};

const sendInvitation: AdminAction = {
  name: 'send-invitation',
  label: 'Send the invitation again',
  tone: 'neutral',
  on: 'record',
  confirm: {
    one: 'A new link to choose a password is sent to the address of this user.',
    many: 'A new link to choose a password is sent to the address of each user.',
  },
  async run(context, ids) {
    const { principal } = context;
    const result = await adminEach(context, ids, (id) =>
      context.db.transaction(async (tx) => {
        const user = await requireChangeable(tx, context, id, false);
        if (!canInvite(user, principal.user) || (await identitiesOf(tx, user.id, 1)).length > 0)
          throw accountErrors.user_not_found({ detail: 'The user has a password, logs in elsewhere, or has no e-mail address.' });
        await startInvitation(tx, user, principal);
        await recordMail(tx, context, user, 'user.invitation_sent');
      }, CONFLICT_RETRIES),
    );
    return adminDone(result, ['user', 'users'], 'invited again');
  },
};

const resetFactor: AdminAction = {
  name: 'reset-factor',
  label: 'Reset the second factor',
  tone: 'bad',
  on: 'record',
  reason: 'optional',
  confirm: {
    one: 'The one-time codes and recovery codes of this user stop working and all sessions end. The next login needs only the password and can set up new codes. Make sure that it is this user who asks.',
    many: 'The one-time codes and recovery codes of these users stop working and all sessions end. Their next logins need only the password and can set up new codes.',
  },
  async run(context, ids) {
    const result = await adminEach(context, ids, (id) =>
      context.db.transaction(async (tx) => {
        const user = await requireChangeable(tx, context, id, true);
        const change = { actor: context.principal, request_id: context.requestId };
        if (!(await removeSecondFactor(tx, user, change)))
          throw accountErrors.no_second_factor({ detail: `${user.username} has no second factor.` });
      }, CONFLICT_RETRIES),
    );
    return adminDone(result, ['user', 'users'], 'without a second factor');
  },
};

async function recordMail(tx: Db, { principal, requestId }: AdminContext, { id }: UserRow, action: string): Promise<void> {
  const entry = { actor: principal, action, target_type: 'user', target_id: id, request_id: requestId };
  await accountsOf(tx).audit()?.record(tx, [entry]);
}

/** By this member of staff, and not their own account. */
function isChangeable(user: User, actor: User): boolean {
  return user.id !== actor.id && (actor.is_superuser || !user.is_superuser);
}

function canReset(user: UserRow, actor: User): boolean {
  return user.is_active && user.email !== null && user.password_hash !== null && (actor.is_superuser || !user.is_superuser);
}

/** A user who has no password yet: the invitation was not used, has expired, or has ended with the rights of who sent it. */
function canInvite(user: UserRow, actor: User): boolean {
  return user.is_active && user.email !== null && user.password_hash === null && (actor.is_superuser || !user.is_superuser);
}

function identitySection(identities: Awaited<ReturnType<typeof identitiesOf>>): AdminSection {
  return {
    kind: 'table',
    title: 'Identity providers',
    columns: identityView.columns,
    rows: identities.map((each) => ({ id: `${each.issuer} ${each.subject}`, title: each.subject, values: identityView.values(each) })),
    empty: '',
  };
}

interface UserActionFacts {
  readonly name: string;
  readonly label: string;
  readonly tone: 'neutral' | 'bad';
  readonly participle: string;
  readonly confirm: AdminWords;
}

function userAction(
  change: (db: Db, id: string, management: UserManagement) => Promise<unknown>,
  { participle, ...shape }: UserActionFacts,
): AdminAction {
  return {
    ...shape,
    dryRun: participle,
    on: 'selection',
    ...(shape.name === 'deactivate' ? { reason: 'optional' as const } : {}),
    async run(context, ids) {
      const management = accountsOf(context.db).management(context.principal, context.requestId);
      const result = await adminEach(context, ids, (id) =>
        context.db.transaction(async (tx) => {
          await requireChangeable(tx, context, id, shape.tone === 'bad');
          await change(tx, id, management);
        }, CONFLICT_RETRIES),
      );
      return adminDone(result, ['user', 'users'], participle);
    },
  };
}

/** Users cannot lock themselves out, and only a superuser changes a superuser: else staff could take the site from its owners. */
async function requireChangeable(tx: Db, { principal }: AdminContext, id: string, takesAway: boolean): Promise<UserRow> {
  const user = isUuid(id) ? await lockUser(tx, id) : null;
  if (user === null) throw accountErrors.user_not_found();
  if (takesAway && user.id === principal.user.id)
    throw accountErrors.own_account({ detail: `${user.username} is your own account; another staff member has to do this.` });
  if (user.is_superuser && !principal.user.is_superuser)
    throw accountErrors.superuser_only({ detail: `${user.username} is a superuser; only a superuser may change that account.` });
  return user;
}

function actionsOn(user: User, actor: User): string[] {
  if (user.is_superuser && !actor.is_superuser) return [];
  const own = user.id === actor.id;
  return [
    ...(user.is_active ? (own ? [] : ['deactivate']) : ['activate']),
    ...(user.is_staff ? (own ? [] : ['remove-staff']) : ['make-staff']),
  ];
}

function rowOf(user: ShownUser): AdminRow {
  const roles = [...(user.is_staff ? ['staff'] : []), ...(user.is_superuser ? ['superuser'] : [])];
  return { id: user.id, title: user.username, values: list.values(user, { state: stateOf(user), roles }) };
}

function stateOf({ is_active }: User | ShownUser): AdminState {
  return is_active
    ? { value: 'active', tone: 'good' }
    : { value: 'deactivated', tone: 'neutral', hint: 'Cannot log in; API keys do not work.' };
}
