import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import { modelView } from '../../app/admin/model-view.ts';
import { adminDone, adminEach } from '../../app/admin/each.ts';
import type { AdminContext, AdminDeclaration, AdminResource } from '../../app/admin/declaration.ts';
import type { AdminSection } from '../../app/admin/sections.ts';
import type { AdminField, AdminResult, AdminValue, AdminWords } from '../../app/admin/shapes.ts';
import type { User } from '../../auth/people/principal.ts';
import type { Clock } from '../../db/clock.ts';
import type { Db } from '../../db/engine/db.ts';
import { screen } from '../../screens/screen.ts';
import { type ScreenAction, type ScreenSectionContext, section } from '../../screens/screen-words.ts';
import { accountsOf } from './users/accounts.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { accountErrors } from './errors.ts';
import { identitiesOf } from './users/identity-store.ts';
import { inviteUser } from './mail/invite-user.ts';
import { mailsResource } from './serve/mail-admin.ts';
import { sessions, userIdentities } from './models.ts';
import type { AccountsSettings } from './options.ts';
import { removeSecondFactor, secondFactorState } from './factors/second-factor.ts';
import { startInvitation, startReset } from './mail/send-link.ts';
import { activateUser, changeStaff, deactivateUser } from './users/manage-users.ts';
import type { UserManagement } from './users/user-management.ts';
import { groupsScreen } from './serve/group-admin.ts';
import { requireChangeable, userResource } from './serve/user-resource.ts';
import { groupsOfUser } from './users/group-store.ts';
import { countSessionsOf, openSessionsOf, type UserRow } from './users/store.ts';

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

/** The admin site's lists of users and groups. */
export function accountsAdmin({ signUp, mail }: Pick<AccountsSettings, 'signUp' | 'mail'>): AdminDeclaration {
  const isInviting = signUp === 'invitation' && mail !== null;
  const sent = mail?.sent === undefined ? [] : [mailsResource(mail.sent)];
  return { resources: [usersScreen({ isInviting, isMailing: mail !== null }), groupsScreen, ...sent] };
}

const invitation: { readonly fields: readonly AdminField[] } = {
  fields: [
    { name: 'username', label: 'User name', kind: 'text', required: true, maxLength: 150 },
    { name: 'email', label: 'E-mail', kind: 'text', required: true, maxLength: 254, help: 'The invitation is sent to this address.' },
  ],
};

function usersScreen({ isInviting, isMailing }: { readonly isInviting: boolean; readonly isMailing: boolean }): AdminResource {
  return screen(userResource, {
    label: 'Users',
    singular: 'user',
    group: 'Access',
    icon: 'user',
    title: 'username',
    columns: [
      { name: 'username', label: 'User name' },
      { name: 'email', label: 'E-mail', secondary: true },
      'state',
      'roles',
      { name: 'created_at', label: 'Created', sortable: true, secondary: true },
    ],
    facts: [
      { name: 'updated_at', label: 'Changed' },
      { name: 'password', kind: 'text' },
      { name: 'second_factor', kind: 'text' },
      { name: 'sessions', label: 'Open sessions', kind: 'number' },
      'id',
    ],
    tones: {
      state: {
        active: 'good',
        deactivated: { value: 'deactivated', tone: 'neutral', hint: 'Cannot log in; API keys do not work.' },
      },
    },
    state: 'state',
    filters: [
      { column: 'is_active', name: 'active', label: 'Active' },
      { column: 'is_staff', name: 'staff', label: 'Staff' },
    ],
    search: ['username', 'email'],
    searches: 'user name or e-mail',
    creation: isInviting
      ? { ...invitation, create: invite }
      : { refused: "Invitations are not enabled. Use `kit user create` on the server, or accounts({ signUp: 'invitation', mail })." },
    exports: false,
    needsPresence: ['create', 'make-staff', 'send-reset', 'send-invitation', 'reset-factor'],
    removable: ({ id, is_superuser: isSuperuser }, { principal: { user } }) => id !== user.id && (user.is_superuser || !isSuperuser),
    removal:
      'Sessions, memberships, API keys and grants are deleted with the user. Refused while other records refer to the user: deactivate the user instead. This cannot be undone.',
    actions: [
      ...(isMailing ? [sendReset] : []),
      ...(isInviting ? [sendInvitation] : []),
      resetFactor,
      userAction(activateUser, {
        name: 'activate',
        isOpen: (user) => !user.is_active,
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
        isOpen: (user) => user.is_active,
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
        isOpen: (user) => !user.is_staff,
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
        isOpen: (user) => user.is_staff,
        label: 'Remove staff',
        tone: 'bad',
        participle: 'no longer staff',
        confirm: {
          one: 'This user can no longer use this site, from the next request on.',
          many: 'They can no longer use this site, from their next request on.',
        },
      }),
    ],
    values: loginFacts,
    sections: [section(sessionSection), section(groupSection), section(identitySection)],
  });
}

/** How a user logs in. */
async function loginFacts(
  { id, password_hash: hash }: UserRow,
  { db, clock }: AdminContext,
): Promise<Readonly<Record<string, AdminValue>>> {
  const factor = await secondFactorState(db, id);
  return {
    password: hash === null ? 'not set: cannot log in with one' : 'set',
    second_factor: factor.confirmedAt === null ? 'not set up' : `one-time codes; ${factor.recoveryCodes} recovery codes left`,
    sessions: await countSessionsOf(db, id, clock.now(), seenAfter(db, clock)),
  };
}

function seenAfter(db: Db, clock: Clock): Date {
  return new Date(clock.now().getTime() - accountsOf(db).settings.sessionIdleMs);
}

type OfUser = ScreenSectionContext<UserRow>;

async function sessionSection({ row, context: { db, clock } }: OfUser): Promise<AdminSection> {
  const open = await openSessionsOf(db, row.id, clock.now(), seenAfter(db, clock), SESSIONS_SHOWN);
  return {
    kind: 'table',
    title: 'Open sessions',
    columns: sessionView.columns,
    rows: open.map((session) => ({ id: session.id, title: session.id, values: sessionView.values(session) })),
    empty: 'Not logged in anywhere.',
  };
}

async function groupSection({ row, context: { db, linkTo } }: OfUser): Promise<AdminSection> {
  const memberships = await groupsOfUser(db, row.id, GROUPS_SHOWN);
  return {
    kind: 'table',
    title: 'Groups',
    columns: [{ name: 'group', label: 'Group', kind: 'link' }],
    rows: memberships.map(({ id, name }) => ({ id, title: name, values: { group: linkTo('group', id, name) } })),
    empty: 'In no group.',
  };
}

async function identitySection({ row, context: { db } }: OfUser): Promise<AdminSection | null> {
  const identities = await identitiesOf(db, row.id, IDENTITIES_SHOWN);
  if (identities.length === 0) return null;
  return {
    kind: 'table',
    title: 'Identity providers',
    columns: identityView.columns,
    rows: identities.map((each) => ({ id: `${each.issuer} ${each.subject}`, title: each.subject, values: identityView.values(each) })),
    empty: '',
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

const sendReset: ScreenAction<UserRow> = {
  name: 'send-reset',
  when: (user, { principal }) => canReset(user, principal.user),
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
        const user = await requireChangeable(tx, context.principal, id, false);
        if (!canReset(user, context.principal.user))
          throw accountErrors.user_not_found({ detail: 'The user has no password or no e-mail address.' });
        await startReset(tx, user.username);
        await recordMail(tx, context, user, 'user.reset_sent');
      }, CONFLICT_RETRIES),
    );
    return adminDone(result, ['user', 'users'], 'sent a link');
  },
};

const sendInvitation: ScreenAction<UserRow> = {
  name: 'send-invitation',
  when: async (user, { db, principal }) => canInvite(user, principal.user) && (await identitiesOf(db, user.id, 1)).length === 0,
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
        const user = await requireChangeable(tx, context.principal, id, false);
        if (!canInvite(user, principal.user) || (await identitiesOf(tx, user.id, 1)).length > 0)
          throw accountErrors.user_not_found({ detail: 'The user has a password, logs in elsewhere, or has no e-mail address.' });
        await startInvitation(tx, user, principal);
        await recordMail(tx, context, user, 'user.invitation_sent');
      }, CONFLICT_RETRIES),
    );
    return adminDone(result, ['user', 'users'], 'invited again');
  },
};

const resetFactor: ScreenAction<UserRow> = {
  name: 'reset-factor',
  when: async (user, { db, principal }) =>
    isChangeable(user, principal.user) && (await secondFactorState(db, user.id)).confirmedAt !== null,
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
        const user = await requireChangeable(tx, context.principal, id, true);
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

interface UserActionFacts {
  readonly name: string;
  readonly label: string;
  readonly tone: 'neutral' | 'bad';
  readonly participle: string;
  readonly confirm: AdminWords;
  /** The rest depends on who does it. */
  readonly isOpen: (user: UserRow) => boolean;
}

function userAction(
  change: (db: Db, id: string, management: UserManagement) => Promise<unknown>,
  { participle, isOpen, ...shape }: UserActionFacts,
): ScreenAction<UserRow> {
  const takesAway = shape.tone === 'bad';
  return {
    ...shape,
    when: (user, { principal: { user: actor } }) =>
      isOpen(user) && (actor.is_superuser || !user.is_superuser) && !(takesAway && user.id === actor.id),
    dryRun: participle,
    on: 'selection',
    ...(shape.name === 'deactivate' ? { reason: 'optional' as const } : {}),
    async run(context, ids) {
      const management = accountsOf(context.db).management(context.principal, context.requestId);
      const result = await adminEach(context, ids, (id) =>
        context.db.transaction(async (tx) => {
          await requireChangeable(tx, context.principal, id, takesAway);
          await change(tx, id, management);
        }, CONFLICT_RETRIES),
      );
      return adminDone(result, ['user', 'users'], participle);
    },
  };
}
