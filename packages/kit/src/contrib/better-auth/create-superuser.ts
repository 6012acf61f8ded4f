import type { Database } from '../../db/engine/db.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { InstanceContext } from './instance.ts';
import { betterAuthState } from './user-changes.ts';

/** What better-auth's own routes for staff use to create users. */
interface UserWriting {
  readonly internalAdapter: {
    findUserByEmail(email: string): Promise<{ readonly user: StoredUser } | null>;
    createUser(user: object): Promise<StoredUser>;
    updateUser(id: string, changes: object): Promise<unknown>;
    linkAccount(account: object): Promise<unknown>;
  };
  readonly password: {
    hash(password: string): Promise<string>;
    readonly config: { readonly minPasswordLength: number; readonly maxPasswordLength: number };
  };
}

interface StoredUser {
  readonly id: string;
  readonly email: string;
  readonly role?: string | null;
}

export interface NewSuperuser {
  readonly email: string;
  readonly name?: string | undefined;
  /** Asked for only where the user is new. */
  readonly password: () => Promise<string>;
}

export interface Superuser {
  readonly id: string;
  readonly email: string;
  /** What was done: nothing for a user who had the role. */
  readonly change: 'created' | 'promoted' | 'none';
}

/** A sentence for the operator. */
export class SuperuserRefused extends Error {
  override readonly name = 'SuperuserRefused';
}

/**
 * The first administrator of an app: a user with the role `admin`, whose address counts as verified. A user who has signed up already gets the role and
 * keeps the login.
 */
export async function createSuperuser(
  db: Database,
  context: InstanceContext,
  { email: given, name, password }: NewSuperuser,
): Promise<Superuser> {
  const { internalAdapter, password: passwords } = context as unknown as UserWriting;
  const email = given.trim().toLowerCase();
  if (!/^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(email)) throw new SuperuserRefused(`"${given}" is not an email address.`);
  const known = await internalAdapter.findUserByEmail(email);
  if (known !== null) {
    const { id, role } = known.user;
    // Roles are a comma list.
    const roles = (role ?? '').split(',').flatMap((each) => each.trim() || []);
    if (roles.includes('admin')) return { id, email, change: 'none' };
    // The database notes the change, and a hook passes it on to the modules and the audit log.
    await internalAdapter.updateUser(id, { role: [...roles, 'admin'].join(',') });
    return { id, email, change: 'promoted' };
  }
  const hash = await hashed(passwords, await password());
  return db.transaction(async (tx) => {
    const user = await internalAdapter.createUser({ email, name: name ?? email.split('@', 1)[0], emailVerified: true, role: 'admin' });
    await internalAdapter.linkAccount({ userId: user.id, accountId: user.id, providerId: 'credential', password: hash });
    const after = { email, is_active: true, is_staff: true };
    await betterAuthState
      .of(tx)
      .registry.audit?.record(tx, [{ actor: 'cli', action: 'user.created', target_type: 'user', target_id: user.id, after }]);
    return { id: user.id, email, change: 'created' } as const;
  }, CONFLICT_RETRIES);
}

async function hashed(rules: UserWriting['password'], password: string): Promise<string> {
  const { minPasswordLength: min, maxPasswordLength: max } = rules.config;
  if (password.length < min) throw new SuperuserRefused(`The password is too short: use ${min} characters or more.`);
  if (password.length > max) throw new SuperuserRefused(`The password is too long: use at most ${max} characters.`);
  return rules.hash(password);
}
