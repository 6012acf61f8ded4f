import { findDeletedUsers } from '../../auth/people/deleted-users.ts';
import { findUsers } from '../../auth/people/find-users.ts';
import type { Membership } from '../../auth/people/membership.ts';
import { couldBeUserId } from '../../auth/people/user-table.ts';
import type { Principal, User } from '../../auth/people/principal.ts';
import { inTime } from '../../auth/rights/in-time.ts';
import { ruleResult } from '../../auth/rights/rule-result.ts';
import {
  judge,
  STANDING_SCHEME,
  type MembershipSource,
  type Standing,
  type StandingQuestion,
  type Standings,
} from '../../auth/rights/standing.ts';
import type { UserDirectory } from '../../auth/people/user-directory.ts';
import type { Db } from '../../db/engine/db.ts';
import { isKitError } from '../../errors/kit-error.ts';
import type { TenantSource } from '../tenants/tenant-source.ts';

/** Where people are looked up. */
export interface StandingSources {
  /** Null: the app has no users. */
  readonly users: UserDirectory | null;
  readonly tenants: Pick<TenantSource, 'membership' | 'memberships'>;
}

type FoundMembership = Membership | null | 'not_known';

/** Standings from the directories of an app: whoever cannot be looked up has none, and a directory that fails is an error, never a permission. */
export function standingsOf(sources: StandingSources): Standings {
  return {
    of: (db, asked) => standings(db, asked, sources),
    membershipSource: (db) => membershipSource(db, sources.tenants),
  };
}

async function standings(db: Db, asked: readonly StandingQuestion[], sources: StandingSources): Promise<readonly Standing[]> {
  if (asked.length === 0) return [];
  const unverified = asked.filter(({ principal }) => principal === undefined).map(({ userId }) => userId);
  const { users } = sources;
  const found = users === null ? new Map<string, User>() : await findUsers(db, users.table, unverified);
  const missing = unverified.filter((id) => !found.has(id));
  const deleted =
    users === null
      ? new Set<string>()
      : await findDeletedUsers(
          db,
          missing.filter((id) => couldBeUserId(id, users.table)),
        );
  const people = asked.map(({ userId, principal }) => principal?.user ?? found.get(userId) ?? null);
  const memberships = await membershipsOf(db, asked, people, sources.tenants);
  return asked.map(({ userId }, index): Standing => {
    const user = people[index] ?? null;
    const membership = memberships[index];
    const why = judge({ user, wasDeleted: deleted.has(userId), membership });
    if (why !== null || user === null) return { ok: false, why: why ?? 'unknown_user' };
    return { ok: true, user, membership: membership === 'not_known' ? null : (membership ?? null) };
  });
}

interface Member {
  readonly user: User;
  readonly tenant: string;
  readonly principal: Principal | undefined;
}

/** What the users are in the tenants they are asked about, in the order given; undefined where no tenant is. Each user and tenant is asked once. */
async function membershipsOf(
  db: Db,
  asked: readonly StandingQuestion[],
  people: readonly (User | null)[],
  directory: StandingSources['tenants'],
): Promise<readonly (FoundMembership | undefined)[]> {
  const members = new Map<string, Member>();
  const keys = asked.map(({ tenant, principal }, index) => {
    const user = people[index] ?? null;
    if (user === null || !user.is_active || tenant === null || tenant === '') return undefined;
    const key = JSON.stringify([principal?.scheme ?? null, user.id, tenant]);
    members.set(key, { user, tenant, principal });
    return key;
  });
  const found = await ask(db, [...members.values()], directory);
  const byKey = new Map([...members.keys()].map((key, index) => [key, found[index] ?? null]));
  return keys.map((key) => (key === undefined ? undefined : (byKey.get(key) ?? null)));
}

async function ask(db: Db, members: readonly Member[], directory: StandingSources['tenants']): Promise<readonly FoundMembership[]> {
  const { membership, memberships } = directory;
  if (members.length === 0) return [];
  if (typeof memberships === 'function') {
    const questions = members.map(({ user, tenant }) => ({ userId: user.id, tenant }));
    const found = await inTime('the memberships', Promise.resolve(memberships(db, questions)));
    // One for each, or it cannot be said whose is whose.
    if (!Array.isArray(found) || found.length !== members.length)
      throw new TypeError(`memberships() returned ${Array.isArray(found) ? found.length : typeof found} for ${members.length} users.`);
    return found.map((each: unknown) => ruleResult('memberships', 'createApp()', each));
  }
  // In turn: a thousand streams do not take all connections.
  const found: FoundMembership[] = [];
  for (const member of members) found.push(membership === undefined ? 'not_known' : await askOne(db, member, directory));
  return found;
}

/** What rejects a request of the user with a status below 500 means that the user is not a member. */
async function askOne(
  db: Db,
  { user, tenant, principal }: Member,
  { membership, memberships }: StandingSources['tenants'],
): Promise<FoundMembership> {
  if (principal === undefined && memberships === 'not known') return 'not_known';
  const asking = principal === undefined ? withoutCredential(user) : { principal, needsCredential: () => false };
  try {
    if (membership === undefined) return null;
    const answer = await inTime('the membership', Promise.resolve(membership({ user, tenant, principal: asking.principal, db })));
    const found = ruleResult('membership', 'createApp()', answer);
    return found === null && asking.needsCredential() ? 'not_known' : found;
  } catch (error) {
    if (asking.needsCredential()) return 'not_known';
    if (!isKitError(error) || error.status >= 500) throw error;
    return null;
  }
}

/** A membership that looks at the claims or the tenant of a credential cannot be asked without one. */
function withoutCredential(user: User): { readonly principal: Principal; readonly needsCredential: () => boolean } {
  let isRead = false;
  const read = (): undefined => void (isRead = true);
  const principal: Principal = {
    user,
    scheme: STANDING_SCHEME,
    scopes: null,
    get claims() {
      return read();
    },
    get tenant() {
      return read();
    },
  };
  return { principal, needsCredential: () => isRead };
}

const NOBODY: User = {
  id: '00000000-0000-0000-0000-000000000000',
  username: '',
  email: null,
  is_active: true,
  is_staff: false,
  is_superuser: false,
};

async function membershipSource(db: Db, { membership, memberships }: StandingSources['tenants']): Promise<MembershipSource> {
  if (typeof memberships === 'function') return 'asked';
  if (memberships === 'not known') return 'not_known';
  if (membership === undefined) return 'undeclared';
  const asking = withoutCredential(NOBODY);
  try {
    await membership({ user: NOBODY, tenant: NOBODY.id, principal: asking.principal, db });
  } catch {
    // A user and a tenant that do not exist may be an error there: it says nothing about those that do.
  }
  return asking.needsCredential() ? 'credential' : 'asked';
}
