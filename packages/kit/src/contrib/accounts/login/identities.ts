import { randomBytes } from 'node:crypto';
import type { ClaimedGroups, IdentityDirectory, NewIdentity } from '../../../auth/people/identity-directory.ts';
import type { User } from '../../../auth/people/principal.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { accountsOf } from '../users/accounts.ts';
import { memberships, setMemberships } from '../users/group-store.ts';
import { appliedGroups, findIdentity, insertIdentity, lockIdentity } from '../users/identity-store.ts';
import { emailFault, normalizeEmail, normalizeUsername, usernameFault } from '../users/login-name.ts';
import { createUser, publicUser } from '../users/manage-users.ts';
import { needsSecondFactor } from '../sessions/session-authenticator.ts';
import { findUserByLogin, type UserRow } from '../users/store.ts';

const ACTOR = 'jwtBearer';
/** Another request may take a free name before this one does. */
const TRIES_MAX = 5;

/** The users of this module that log in at an identity provider. */
export const accountsIdentities: IdentityDirectory = {
  needsSecondFactor: (db, user) => needsSecondFactor(user, accountsOf(db).settings),
  async find(db, identity) {
    const row = await findIdentity(db, identity);
    return row === null ? null : { user: publicUser(row), groupsDigest: row.groups_digest, groupsAt: row.groups_at };
  },
  async provision(db, identity) {
    for (let tries = 1; ; tries++) {
      try {
        return publicUser(await db.transaction((tx) => provisionedUser(tx, identity), CONFLICT_RETRIES));
      } catch (error) {
        // Another request was faster, with this identity or with the same name.
        const known = await findIdentity(db, identity);
        if (known !== null) return publicUser(known);
        if (tries === TRIES_MAX) throw error;
      }
    }
  },
  async applyGroups(db, user, groups) {
    await db.transaction((tx) => applyGroups(tx, user, groups), CONFLICT_RETRIES);
  },
};

async function provisionedUser(tx: Db, identity: NewIdentity): Promise<UserRow> {
  const { clock } = accountsOf(tx);
  const email = verifiedEmail(identity);
  const owner = email === null ? null : await findUserByLogin(tx, email);
  const user =
    owner !== null && identity.linkVerifiedEmail
      ? owner
      : await createUser(
          tx,
          { username: await freeName(tx, identity), email: owner === null ? email : null },
          accountsOf(tx).management(ACTOR),
        );
  // Fails for the second of two requests with one identity, and takes its user back.
  await insertIdentity(tx, identity, user.id, clock.now());
  const { issuer } = identity;
  const entry = { action: 'user.identity_linked', target_type: 'user', target_id: user.id, metadata: { issuer, created: user !== owner } };
  await accountsOf(tx)
    .audit()
    ?.record(tx, [{ ...entry, actor: ACTOR }]);
  return user;
}

/**
 * An address that nobody has verified could be anybody's: it is not stored, so that it cannot be matched later either. Nor is one that becomes another
 * address when it is normalized, such as one with wide letters: the other one was not verified.
 */
function verifiedEmail({ email, emailVerified }: NewIdentity): string | null {
  if (email === null || !emailVerified || email.normalize('NFKC') !== email) return null;
  const normalized = normalizeEmail(email);
  return emailFault(normalized) === null ? normalized : null;
}

/** The provider's name for the user as far as it can be one here; with a random ending where it is taken. */
async function freeName(tx: Db, { username, subject }: NewIdentity): Promise<string> {
  const wanted = [username.split('@')[0] ?? '', subject, 'user'].map(nameFrom).find((name) => usernameFault(name) === null) ?? 'user';
  return (await findUserByLogin(tx, wanted)) === null ? wanted : `${wanted.slice(0, 130)}-${randomBytes(5).toString('hex')}`;
}

function nameFrom(text: string): string {
  return normalizeUsername(text)
    .replaceAll(/[^a-z0-9._+-]+/g, '-')
    .replace(/^[._+-]+/, '')
    .slice(0, 140);
}

async function applyGroups(tx: Db, user: User, { names, digest, issuedAt, ...identity }: ClaimedGroups): Promise<void> {
  const held = await lockIdentity(tx, identity);
  if (held === null || (held.groups_at !== null && held.groups_at > issuedAt)) return;
  const before = await memberships(tx, user.id, identity.issuer);
  const after = await setMemberships(tx, user.id, identity.issuer, names, accountsOf(tx).clock.now());
  await appliedGroups(tx, identity, digest, issuedAt);
  const [was, is] = [before.map(({ name }) => name).sort(), after.map(({ name }) => name).sort()];
  if (was.join('\n') === is.join('\n')) return;
  const entry = { action: 'user.groups_synchronized', target_type: 'user', target_id: user.id };
  await accountsOf(tx)
    .audit()
    ?.record(tx, [{ ...entry, actor: ACTOR, before: { groups: was }, after: { groups: is }, metadata: { issuer: identity.issuer } }]);
}
