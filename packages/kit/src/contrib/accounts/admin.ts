import { modelView } from '../../app/admin/model-view.ts';
import type { AdminContext, AdminDeclaration, AdminResource } from '../../app/admin/declaration.ts';
import type { AdminSection } from '../../app/admin/sections.ts';
import type { AdminField, AdminResult, AdminState, AdminValue } from '../../app/admin/shapes.ts';
import type { User } from '../../auth/people/principal.ts';
import type { Clock } from '../../db/clock.ts';
import type { Db } from '../../db/engine/db.ts';
import { screen } from '../../screens/screen.ts';
import { type ScreenSectionContext, section } from '../../screens/screen-words.ts';
import { accountsOf } from './users/accounts.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { identitiesOf } from './users/identity-store.ts';
import { inviteUser } from './mail/invite-user.ts';
import { mailsResource } from './serve/mail-admin.ts';
import { sessions, userIdentities } from './models.ts';
import type { AccountsSettings } from './options.ts';
import { secondFactorState } from './factors/second-factor.ts';
import { groupsScreen } from './serve/group-admin.ts';
import { hasPasswordAndAddress, isInvited, logsInElsewhere, userResource } from './serve/user-resource.ts';
import { groupsOfUser } from './users/group-store.ts';
import { countSessionsOf, invitedAmong, openSessionsOf, type UserRow } from './users/store.ts';

const sessionView = modelView(sessions, [
  { name: 'created_at', label: 'Logged in' },
  { name: 'seen_at', label: 'Last seen' },
  { name: 'expires_at', label: 'Ends' },
  { name: 'device', kind: 'device' },
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
      { name: 'state', kind: 'state' },
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
    load: async (rows, { db }) => {
      const invited = await invitedAmong(
        db,
        rows.map(({ id }) => id),
      );
      const services = await accountsOf(db).serviceUsersAmong(
        db,
        rows.map(({ id }) => id),
      );
      return rows.map(({ id }) => ({ is_invited: invited.has(id), is_service: services.has(id) }));
    },
    viewAs: ({ id }) => ({ user: id, tenant: null }),
    cells: { state: (row) => userState(row as UserRow & LoadedUser) },
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
    needsPresence: ['create'],
    removable: ({ id, is_superuser: isSuperuser }, { principal: { user } }) => id !== user.id && (user.is_superuser || !isSuperuser),
    removal:
      'Sessions, memberships, API keys and grants are deleted with the user. Refused while other records refer to the user: deactivate the user instead. This cannot be undone.',
    actions: [
      {
        name: 'send-reset',
        label: 'Send password link',
        on: 'record',
        done: 'sent a link',
        when: (user, { principal }) => isMailing && hasPasswordAndAddress(user) && mayChange(user, principal.user),
        confirm: {
          one: 'A link to set a new password is sent to the address of this user. The old password works until the link is used.',
          many: 'A link to set a new password is sent to the address of each user. The old passwords work until the links are used.',
        },
      },
      {
        name: 'send-invitation',
        label: 'Send the invitation again',
        on: 'record',
        done: 'invited again',
        when: async (user, { db, principal }) =>
          isInviting && isInvited(user) && mayChange(user, principal.user) && !(await logsInElsewhere(db, user)),
        confirm: {
          one: 'A new link to choose a password is sent to the address of this user.',
          many: 'A new link to choose a password is sent to the address of each user.',
        },
      },
      {
        name: 'reset-factor',
        label: 'Reset the second factor',
        tone: 'bad',
        on: 'record',
        reason: 'optional',
        done: 'without a second factor',
        when: async (user, { db, principal }) =>
          mayTakeFrom(user, principal.user) && (await secondFactorState(db, user.id)).confirmedAt !== null,
        confirm: {
          one: 'The one-time codes and recovery codes of this user stop working and all sessions end. The next login needs only the password and can set up new codes. Make sure that it is this user who asks.',
          many: 'The one-time codes and recovery codes of these users stop working and all sessions end. Their next logins need only the password and can set up new codes.',
        },
      },
      {
        name: 'activate',
        label: 'Activate',
        done: 'activated',
        when: (user, { principal }) => !user.is_active && mayChange(user, principal.user),
        confirm: {
          one: 'This user can log in again and their API keys work again. Sessions from before stay ended.',
          many: 'They can log in again and their API keys work again. Sessions from before stay ended.',
        },
      },
      {
        name: 'deactivate',
        label: 'Deactivate',
        tone: 'bad',
        reason: 'optional',
        done: 'deactivated',
        when: (user, { principal }) => user.is_active && mayTakeFrom(user, principal.user),
        confirm: {
          one: 'All sessions of this user end and their API keys stop working immediately.',
          many: 'All their sessions end and their API keys stop working immediately.',
        },
      },
      {
        name: 'make-staff',
        label: 'Make staff',
        done: 'made staff',
        when: (user, { principal }) => !user.is_staff && mayChange(user, principal.user),
        confirm: {
          one: 'This user can use this site, and whatever else the application gives to staff.',
          many: 'They can use this site, and whatever else the application gives to staff.',
        },
      },
      {
        name: 'remove-staff',
        label: 'Remove staff',
        tone: 'bad',
        done: 'no longer staff',
        when: (user, { principal }) => user.is_staff && mayTakeFrom(user, principal.user),
        confirm: {
          one: 'This user can no longer use this site, from the next request on.',
          many: 'They can no longer use this site, from their next request on.',
        },
      },
    ],
    values: loginFacts,
    sections: [section(sessionSection), section(groupSection), section(identitySection)],
  });
}

/** An invited user has no way to log in yet. */
interface LoadedUser {
  readonly is_invited?: boolean;
  readonly is_service?: boolean;
}

function userState({
  is_active: isActive,
  is_invited: isInvited = false,
  is_service: isService = false,
}: Pick<UserRow, 'is_active'> & LoadedUser): AdminState {
  if (!isActive) return { value: 'deactivated', tone: 'neutral', hint: 'Cannot log in; API keys do not work.' };
  if (isInvited) return { value: 'invited', tone: 'info', hint: 'Has not accepted the invitation, and cannot log in yet.' };
  if (isService)
    return { value: 'service user', tone: 'neutral', hint: 'A program of a tenant: it has API keys, and nobody logs in as it.' };
  return { value: 'active', tone: 'good' };
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

/** Only a superuser changes a superuser. */
function mayChange(user: User, actor: User): boolean {
  return actor.is_superuser || !user.is_superuser;
}

/** What takes rights away is done by others. */
function mayTakeFrom(user: User, actor: User): boolean {
  return user.id !== actor.id && mayChange(user, actor);
}
