import { ruleResult } from '../../../auth/rights/rule-result.ts';
import type { Db } from '../../../db/engine/db.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import type { KnownAsker } from '../declare/asker.ts';
import { grantErrors } from '../errors.ts';
import { checkGrants, type GivenGrant, lockObject, putGrants } from './grant.ts';
import { allPaths, type Holdings, holdingsOf } from './holdings.ts';
import { grantsState } from '../declare/grants-state.ts';
import type { ObjectActions } from '../declare/object-actions.ts';
import type { ChainLink } from '../declare/object-chain.ts';
import { type ChangedGrant, type GrantChange, recordGrants } from '../rows/record-grant.ts';
import { countGrantsOn, deleteGrant, findGrant, grantsOn, type GrantRow } from '../rows/store.ts';
import { parseSubject } from '../declare/subject.ts';

export const SHARE = 'share';
/** More are better a group: the list of grants shows them all. */
export const GRANTS_PER_OBJECT_MAX = 1_000;

/** An object that is locked, and what the caller holds on it since. 404 without view, 403 without share. */
export interface SharedObject {
  readonly link: ChainLink;
  readonly holdings: Holdings;
}

export async function lockToShare(tx: Db, declaration: ObjectActions, id: unknown, asker: KnownAsker): Promise<SharedObject> {
  const link = await lockObject(tx, declaration, id);
  return { link, holdings: requireShare(await holdingsOf(tx, declaration, id, asker)) };
}

/** What an asker holds on an object that it may share; undefined where it may not. */
export async function sharedBy(db: Db, declaration: ObjectActions, id: unknown, asker: KnownAsker): Promise<Holdings | undefined> {
  const holdings = await holdingsOf(db, declaration, id, asker);
  const mayShare = holdings.isSuperuser || (holdings.until.has('view') && holdings.until.has(SHARE));
  return holdings.exists && mayShare ? holdings : undefined;
}

export function requireShare(holdings: Holdings): Holdings {
  if (!holdings.exists || !holdings.until.has('view')) throw coreErrors.not_found();
  // A model without the action is shared by superusers and programs.
  if (!holdings.isSuperuser && !holdings.until.has(SHARE))
    throw coreErrors.permission_denied({
      detail: `You can view this object, but you do not have the action "${SHARE}".`,
      extensions: { action: SHARE },
    });
  return holdings;
}

/** Gives some subjects their grants, all or none. Callers can only grant or revoke actions that they have, and not for longer than they have them. */
export async function shareObject(
  tx: Db,
  { link, holdings }: SharedObject,
  grants: readonly GivenGrant[],
  change: GrantChange,
  locationOf: (index: number) => readonly (string | number)[],
): Promise<readonly GrantRow[]> {
  const { declaration } = link;
  const checked = await checkGrants(tx, link, grants, locationOf);
  const before = await grantsOn(
    tx,
    [{ type: declaration.type, id: link.id }],
    checked.map(({ subject }) => subject),
  );
  for (const { subject, stored, expiresAt } of checked) {
    const had = before.find((row) => row.subject === subject);
    const given = declaration.expand(stored);
    requireHeld(holdings, [...given, ...(had === undefined ? [] : declaration.expand(had.actions))]);
    requireHeld(holdings, [...given], expiresAt);
  }
  const changes = await keepingHolder(tx, link, before, () => putGrants(tx, link, checked, change.by));
  if ((await countGrantsOn(tx, declaration.type, link.id)) > GRANTS_PER_OBJECT_MAX)
    throw grantErrors.too_many_grants({ extensions: { limit: GRANTS_PER_OBJECT_MAX } });
  await recordGrants(tx, changes, change);
  return changes.map(({ after }) => after as GrantRow);
}

/** Takes a grant away. 404 when the object has no such grant. */
export async function unshareObject(tx: Db, { link, holdings }: SharedObject, grantId: string, change: GrantChange): Promise<void> {
  const { declaration } = link;
  const row = await findGrant(tx, grantId);
  if (row === null || row.object_type !== declaration.type || row.object_id !== link.id) throw coreErrors.not_found();
  requireHeld(holdings, [...declaration.expand(row.actions)]);
  const changes = await keepingHolder(tx, link, [row], async () => {
    await deleteGrant(tx, row.id);
    return [{ before: row, after: null }];
  });
  await recordGrants(tx, changes, change);
}

function requireHeld({ isSuperuser, until }: Holdings, actions: readonly string[], expiresAt?: Date | null): void {
  if (isSuperuser) return;
  const missing = actions.filter((action) => {
    const held = until.get(action);
    if (held === undefined) return true;
    return expiresAt !== undefined && held !== null && (expiresAt === null || expiresAt > held);
  });
  if (missing.length > 0) throw grantErrors.cannot_grant({ extensions: { actions: [...new Set(missing)].sort() } });
}

/**
 * Makes a change, and requires that the object can be shared as before: by its owner or by a subject of a grant. A change that takes nothing from
 * a holder of `share` is not asked about.
 */
async function keepingHolder(
  tx: Db,
  { declaration, id }: ChainLink,
  touched: readonly GrantRow[],
  work: () => Promise<ChangedGrant[]>,
): Promise<ChangedGrant[]> {
  if (!touched.some(({ actions }) => declaration.expand(actions).has(SHARE))) return work();
  const before = await holderRank(tx, declaration, id);
  const changes = await work();
  if ((await holderRank(tx, declaration, id)) < before) throw grantErrors.last_holder();
  return changes;
}

/** 2: a subject that can share lastingly. 1: only until its grant expires. 0: none, except superusers. */
async function holderRank(db: Db, declaration: ObjectActions, id: unknown): Promise<0 | 1 | 2> {
  const paths = await allPaths(db, declaration, id);
  // Nothing counts without view; what everybody has, each subject has.
  const isViewed = (subject: string) =>
    paths.some((path) => path.actions.includes('view') && (path.subject === subject || !path.subject.includes(':')));
  const sharing = paths.filter(({ actions, subject }) => actions.includes(SHARE) && isViewed(subject));
  for (const path of sharing) if (path.expiresAt === null && (await isAlive(db, path.subject))) return 2;
  for (const path of sharing) if (path.expiresAt !== null && (await isAlive(db, path.subject))) return 1;
  return 0;
}

/** Whether anybody stands behind a subject: an active user, or a group that has one. */
async function isAlive(db: Db, subject: string): Promise<boolean> {
  const { users, groups } = grantsState.of(db);
  const parsed = parseSubject(subject);
  if (parsed === undefined) return false;
  if (parsed.kind === 'user') return users === null || (await users.findById(db, parsed.id))?.is_active === true;
  // A directory that cannot tell is believed.
  if (parsed.kind === 'group' && groups?.hasActiveMember !== undefined)
    return ruleResult('hasActiveMember', 'group directory', await groups.hasActiveMember(db, parsed.id));
  return true;
}
