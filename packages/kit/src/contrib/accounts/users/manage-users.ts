import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { AuditEntry } from '../../../auth/request/audit-sink.ts';
import type { User } from '../../../auth/people/principal.ts';
import { isRowHeld } from '../../../crud/subjects/held-tables.ts';
import type { Db } from '../../../db/engine/db.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { FaultCollector } from '../../../errors/fault-collector.ts';
import { accountsOf, accountsState } from './accounts.ts';
import { accountErrors } from '../errors.ts';
import { users } from '../models.ts';
import { emailFault, normalizeEmail, normalizeLogin, normalizeUsername, usernameFault } from './login-name.ts';
import { passwordFault } from './password-policy.ts';
import { hashPassword, type PasswordCost } from './password.ts';
import { deleteInvitationsBy, deleteLinksOf } from './link-store.ts';
import {
  deleteSessionsOf,
  deleteUserRow,
  findUserById,
  findUserByLogin,
  lockUser,
  lockUserToDelete,
  insertUser,
  setActive,
  setEmail,
  setPasswordHash,
  setStaff,
  type UserRow,
} from './store.ts';
import { refuseUnknownNames } from '../../../options/read-options.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import { constraintViolation } from '../../../db/engine/constraint-violation.ts';
import { checkManagement, type UserManagement } from './user-management.ts';
import { rowsThatKeep } from './user-references.ts';

export interface NewUser {
  /** Unique, stored in lower case. Letters, digits, `.`, `_`, `+` and `-`. */
  readonly username: string;
  /** Unique, stored in lower case. Default: none. */
  readonly email?: string | null;
  /** Without one the user cannot log in with a password. */
  readonly password?: string | null;
  /** May use the admin site. Default: false. */
  readonly is_staff?: boolean;
  /** Not limited by grants and roles. Default: false. */
  readonly is_superuser?: boolean;
}

const NEW_USER: ReadonlySet<string> = new Set(
  Object.keys({ username: true, email: true, password: true, is_staff: true, is_superuser: true } satisfies Record<keyof NewUser, true>),
);

/** By id, user name or e-mail address. */
export async function requireUser(db: Db, login: string): Promise<UserRow> {
  const normalized = normalizeLogin(login);
  const user = isUuid(normalized) ? await findUserById(db, normalized) : await findUserByLogin(db, normalized);
  if (user === null) throw accountErrors.user_not_found({ detail: `There is no user ${JSON.stringify(login)}.` });
  return user;
}

/** Creates a user. The password is checked and hashed; without one the user cannot log in with a password. */
export async function createUser(db: Db, input: NewUser, management: UserManagement = accountsOf(db).management(null)): Promise<UserRow> {
  const insertIn = await prepareUser(input, management);
  return db.transaction(insertIn, CONFLICT_RETRIES);
}

/** The first half of {@link createUser}, which is slow: what it returns creates the user in a transaction. */
export async function prepareUser(input: NewUser, management: UserManagement): Promise<(tx: Db) => Promise<UserRow>> {
  refuseUnknownNames('createUser()', input, NEW_USER);
  checkManagement('createUser()', management);
  const { username, email, password } = checkedUser(input);
  const password_hash = password === null ? null : await hashPassword(password, management.passwordCost);
  const now = management.clock.now();
  const { is_staff = false, is_superuser = false } = input;
  const wanted = {
    id: uuidv7(management.clock),
    username,
    email,
    is_active: true,
    is_staff,
    is_superuser,
    password_hash,
    created_at: now,
    updated_at: now,
  };
  return async (tx) => {
    const user = await insertUser(tx, wanted);
    if (user === null) {
      throw (await findUserByLogin(tx, username)) === null ? accountErrors.email_taken() : accountErrors.username_taken();
    }
    await record(tx, management, { action: 'user.created', target_id: user.id, before: null, after: publicUser(user) });
    return user;
  };
}

/** Every fault at once: of the user name, the address and the password. */
function checkedUser(input: NewUser): { readonly username: string; readonly email: string | null; readonly password: string | null } {
  const isNamed = typeof input.username === 'string';
  const username = isNamed ? normalizeUsername(input.username) : '';
  const email = input.email === undefined || input.email === null || input.email === '' ? null : normalizeEmail(input.email);
  const password = input.password ?? null;
  const faults = new FaultCollector();
  const refuse = (field: string, message: string | null): void => {
    if (message === null) return;
    const errors = [{ location: ['body', field], code: 'invalid', message }];
    faults.refuse(accountErrors.invalid_user({ detail: message, errors }));
  };
  refuse('username', isNamed ? usernameFault(username) : 'A user needs a username.');
  refuse('email', email === null ? null : emailFault(email));
  if (password !== null) faults.check(() => checkPassword(password, { username, email }, 'password'));
  faults.throwIfAny();
  return { username, email, password };
}

/** Ends every session of the user, and the invitations that the user has sent, in the same transaction; the next request with a session is anonymous. */
export async function deactivateUser(db: Db, id: string, management: UserManagement = accountsOf(db).management(null)): Promise<UserRow> {
  return changeActive(db, id, false, management);
}

/** Sessions from before stay ended, also one that a login in flight created while the user was being deactivated. */
export async function activateUser(db: Db, id: string, management: UserManagement = accountsOf(db).management(null)): Promise<UserRow> {
  return changeActive(db, id, true, management);
}

/** Whether `isStaff` admits the user, from the next request on. */
export async function changeStaff(
  db: Db,
  id: string,
  staff: boolean,
  management: UserManagement = accountsOf(db).management(null),
): Promise<UserRow> {
  checkManagement('changeStaff()', management);
  return db.transaction(async (tx) => {
    if (staff && (await accountsState.find(tx)?.serviceUsersAmong(tx, [id]))?.has(id) === true) throw accountErrors.service_user();
    const before = await lockUser(tx, id);
    const user = await setStaff(tx, id, staff, management.clock.now());
    if (before === null || user === null) throw accountErrors.user_not_found();
    if (before.is_staff === staff) return user;
    const action = staff ? 'user.staff_granted' : 'user.staff_removed';
    await record(tx, management, { action, target_id: id, before: { is_staff: before.is_staff }, after: { is_staff: staff } });
    // More rights need a new token: a session that somebody planted before does not become one of staff.
    if (staff) await deleteSessionsOf(tx, id);
    else await deleteInvitationsBy(tx, id);
    // Keys and caches remember the owner with its flags.
    await tellListeners(tx, id, management);
    return user;
  }, CONFLICT_RETRIES);
}

/**
 * Deletes a user with its sessions, memberships, API keys and grants, in one transaction. Rows that refer to the user follow their foreign
 * key: `onDelete: 'cascade'` deletes them, `'set null'` keeps them without the user, and any other refuses the deletion with 409
 * `user_in_use`, as does a legal hold. `deactivateUser` shuts a user out and keeps everything.
 */
export async function deleteUser(db: Db, id: string, management: UserManagement = accountsOf(db).management(null)): Promise<UserRow> {
  checkManagement('deleteUser()', management);
  return db.transaction(async (tx) => {
    const user = isUuid(id) ? await lockUserToDelete(tx, id) : null;
    if (user === null) throw accountErrors.user_not_found();
    if (await isRowHeld(tx, users, user.id)) throw userHeld(user);
    const kept = await rowsThatKeep(tx, user.id);
    if (kept.length > 0) throw userInUse(user, kept);
    const ended = await deleteSessionsOf(tx, user.id);
    await deleteUserRow(tx, user.id).catch((error: unknown) => {
      // A row below one that goes along refuses, or one was made meanwhile.
      throw constraintViolation(error)?.kind === 'restrict' || constraintViolation(error)?.kind === 'foreign_key'
        ? userInUse(user, [])
        : error;
    });
    const metadata = { logins_ended: ended };
    await record(tx, management, { action: 'user.deleted', target_id: user.id, before: publicUser(user), after: null, metadata });
    await tellListeners(tx, user.id, management);
    return user;
  }, CONFLICT_RETRIES);
}

function userInUse({ username }: UserRow, places: readonly string[]): Error {
  const where = places.length === 0 ? 'Rows' : `Rows of ${places.join(', ')}`;
  return accountErrors.user_in_use({
    detail: `${where} refer to ${username}: delete them or give them to another user first, or deactivate the user instead.`,
    extensions: { references: places },
  });
}

function userHeld({ username }: UserRow): Error {
  return accountErrors.user_in_use({
    detail: `A legal hold keeps the rows of ${username}, or rows that would be deleted with the user: deactivate the user instead.`,
    extensions: { references: [] },
  });
}

/** Every session ends, also those that were opened with a stolen password. */
export async function changePassword(
  db: Db,
  user: Pick<UserRow, 'id' | 'username' | 'email'>,
  password: string,
  management: UserManagement = accountsOf(db).management(null),
): Promise<UserRow> {
  checkManagement('changePassword()', management);
  const hash = await hashNewPassword(password, user, management.passwordCost);
  return db.transaction((tx) => replacePassword(tx, user.id, hash, management), CONFLICT_RETRIES);
}

/** The second half of {@link changePassword}, for callers with more to do in the same transaction. */
export async function replacePassword(tx: Db, id: string, hash: string, management: UserManagement): Promise<UserRow> {
  const changed = await setPasswordHash(tx, id, hash, management.clock.now());
  if (changed === null) throw accountErrors.user_not_found();
  const ended = await deleteSessionsOf(tx, id);
  // A link that somebody else holds must not undo the change.
  await deleteLinksOf(tx, id);
  await record(tx, management, { action: 'user.password_changed', target_id: id, metadata: { logins_ended: ended } });
  return changed;
}

/** By an operator, who vouches for the address. Users change theirs with a link: see links.ts. */
export async function changeEmail(db: Db, id: string, email: string, management: UserManagement): Promise<UserRow> {
  const wanted = checkedEmail(email);
  return db.transaction(async (tx) => {
    const user = await lockUser(tx, id);
    if (user === null) throw accountErrors.user_not_found();
    return replaceEmail(tx, user, wanted, management);
  }, CONFLICT_RETRIES);
}

/** The user is locked. Links end: those to reset the password were sent to the old address. */
export async function replaceEmail(tx: Db, user: UserRow, email: string, management: UserManagement): Promise<UserRow> {
  const changed = await setEmail(tx, user.id, email, management.clock.now()).catch((error: unknown) => {
    // Another user got it at the same time.
    throw constraintViolation(error)?.kind === 'unique' ? accountErrors.email_taken() : error;
  });
  if (changed === null) throw accountErrors.email_taken();
  await deleteLinksOf(tx, user.id);
  const [before, after] = [{ email: user.email }, { email }];
  await record(tx, management, { action: 'user.email_changed', target_id: user.id, before, after });
  // Keys and caches remember the owner with its address.
  await tellListeners(tx, user.id, management);
  return changed;
}

/** The address as it is stored; 422 for one that cannot be. */
export function checkedEmail(given: string): string {
  const email = normalizeEmail(given);
  const message = emailFault(email);
  if (message === null) return email;
  throw accountErrors.invalid_user({ detail: message, errors: [{ location: ['body', 'email'], code: 'invalid', message }] });
}

/** The user without its password hash: the only form that leaves the module. */
export function publicUser({ id, username, email, is_active, is_staff, is_superuser }: User): User {
  return { id, username, email, is_active, is_staff, is_superuser };
}

async function changeActive(db: Db, id: string, active: boolean, management: UserManagement): Promise<UserRow> {
  checkManagement(active ? 'activateUser()' : 'deactivateUser()', management);
  return db.transaction(async (tx) => {
    const before = await lockUser(tx, id);
    const user = await setActive(tx, id, active, management.clock.now());
    if (before === null || user === null) throw accountErrors.user_not_found();
    const ended = await deleteSessionsOf(tx, id);
    await deleteLinksOf(tx, id);
    if (!active) await deleteInvitationsBy(tx, id);
    if (before.is_active !== active) {
      const action = active ? 'user.activated' : 'user.deactivated';
      const [was, is] = [{ is_active: before.is_active }, { is_active: active }];
      await record(tx, management, { action, target_id: id, before: was, after: is, metadata: { logins_ended: ended } });
      await tellListeners(tx, id, management);
    }
    return user;
  }, CONFLICT_RETRIES);
}

/** Slow on purpose: call it before a transaction, which would hold the writer all the while. */
export async function hashNewPassword(password: string, user: Pick<User, 'username' | 'email'>, cost: PasswordCost): Promise<string> {
  checkPassword(password, user, 'new_password');
  return hashPassword(password, cost);
}

function checkPassword(password: string, user: Pick<User, 'username' | 'email'>, field: string): void {
  const message = passwordFault(password, user);
  if (message === null) return;
  throw accountErrors.weak_password({ detail: message, errors: [{ location: ['body', field], code: 'weak_password', message }] });
}

async function tellListeners(tx: Db, id: string, { userChanges = [], actor, requestId }: UserManagement): Promise<void> {
  for (const tell of userChanges) await tell(tx, id, { by: actor ?? null, requestId: requestId ?? null });
}

async function record(
  tx: Db,
  { audit, actor, requestId }: UserManagement,
  entry: Omit<AuditEntry, 'target_type' | 'actor'>,
): Promise<void> {
  await audit?.record(tx, [{ ...entry, target_type: 'user', actor: actor ?? null, request_id: requestId ?? null }]);
}
