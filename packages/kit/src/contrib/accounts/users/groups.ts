import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { AuditEntry } from '../../../auth/request/audit-sink.ts';
import type { Group, GroupDirectory } from '../../../auth/people/group-directory.ts';
import { hasHiddenCharacters } from '../../../auth/people/hidden-characters.ts';
import type { Db } from '../../../db/engine/db.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { refuseUnknownNames, requireArguments } from '../../../options/read-options.ts';
import { accountsOf } from './accounts.ts';
import { accountErrors } from '../errors.ts';
import {
  allGroupIdsOf,
  deleteGroupRow,
  deleteMember,
  findGroupById,
  findGroupByName,
  groupIdsOf,
  groupIdsOfMany,
  hasActiveMember,
  type GroupRow,
  insertGroup,
  insertMember,
  lockGroup,
  renameGroupRow,
} from './group-store.ts';
import { forgetAppliedGroups } from './identity-store.ts';
import { findUserById } from './store.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import { queryable } from '../../../options/value-rule.ts';

/** Who changes a group, and in which request: for the audit entry. */
export interface GroupChange {
  /** Who changes it, for the audit entry. */
  readonly by?: AuditEntry['actor'];
  /** The request that asked for the change, for the audit entry. */
  readonly requestId?: string | null;
}

export interface NewGroup {
  /** Unique within its tenant. */
  readonly name: string;
  /** The tenant that the group counts in. Null: the group counts in every tenant. */
  readonly tenantKey: string | null;
  /** The `issuer` of jwtBearer() whose tokens decide who is a member. Default: members are added and removed here. */
  readonly managedBy?: string | null;
}

const CHANGE: ReadonlySet<string> = new Set(Object.keys({ by: true, requestId: true } satisfies Record<keyof GroupChange, true>));
const NEW_GROUP: ReadonlySet<string> = new Set(
  Object.keys({ name: true, tenantKey: true, managedBy: true } satisfies Record<keyof NewGroup, true>),
);
const NAME_MAX = 150;

/** The memberships of this module, as every other module sees them. */
export const accountsGroups: GroupDirectory = {
  async groupsOf(db, userId, tenantKey) {
    return isUuid(userId) ? groupIdsOf(db, userId, tenantKey) : [];
  },
  groupsOfMany: groupIdsOfMany,
  async allGroupsOf(db, userId) {
    return isUuid(userId) ? allGroupIdsOf(db, userId) : [];
  },
  async hasActiveMember(db, id) {
    return isUuid(id) && hasActiveMember(db, id);
  },
  async findById(db, id) {
    return isUuid(id) ? asGroup(await findGroupById(db, id)) : null;
  },
  async findByName(db, name, tenantKey) {
    return asGroup(await findGroupByName(db, normalizeName(name), tenantKey));
  },
};

/** Creates a group of users. */
export async function createGroup(db: Db, group: NewGroup, change: GroupChange = {}): Promise<GroupRow> {
  refuseUnknownNames('createGroup()', group, NEW_GROUP);
  refuseUnknownNames('createGroup()', change, CHANGE);
  const name = checkedName(group.name);
  // Leaving the tenant out must not be the way to a group that counts everywhere.
  if (group.tenantKey !== null && (typeof group.tenantKey !== 'string' || group.tenantKey === ''))
    throw new TypeError('createGroup(): tenantKey is missing. Pass the key of a tenant, or null for a group that counts in every tenant.');
  const { clock } = accountsOf(db);
  const now = clock.now();
  return db.transaction(async (tx) => {
    const managed_by = group.managedBy ?? '';
    const row = { id: uuidv7(clock), tenant_key: group.tenantKey ?? '', name, managed_by, created_at: now, updated_at: now };
    const made = await insertGroup(tx, row);
    if (made === null) throw accountErrors.group_name_taken();
    if (managed_by !== '') await forgetAppliedGroups(tx, managed_by);
    await record(tx, change, { action: 'group.created', target_id: made.id, before: null, after: facts(made) });
    return made;
  }, CONFLICT_RETRIES);
}

/** Gives a group another name. */
export async function renameGroup(db: Db, id: string, name: string, change: GroupChange = {}): Promise<GroupRow> {
  refuseUnknownNames('renameGroup()', change, CHANGE);
  requireArguments('renameGroup()', { db }, { db: queryable });
  const wanted = checkedName(name);
  return db.transaction(async (tx) => {
    const before = await requireLocked(tx, id);
    if (before.name === wanted) return before;
    const taken = await findGroupByName(tx, wanted, before.tenant_key === '' ? null : before.tenant_key);
    if (taken !== null && taken.tenant_key === before.tenant_key) throw accountErrors.group_name_taken();
    const after = await renameGroupRow(tx, id, wanted, accountsOf(tx).clock.now());
    await record(tx, change, { action: 'group.renamed', target_id: id, before: facts(before), after: facts(after) });
    return after;
  }, CONFLICT_RETRIES);
}

/** Removes the group, its memberships, and what other modules keep for it, in one transaction. */
export async function deleteGroup(db: Db, id: string, change: GroupChange = {}): Promise<void> {
  refuseUnknownNames('deleteGroup()', change, CHANGE);
  requireArguments('deleteGroup()', { db }, { db: queryable });
  await db.transaction(async (tx) => {
    const group = await requireLocked(tx, id);
    await deleteGroupRow(tx, id);
    await record(tx, change, { action: 'group.deleted', target_id: id, before: facts(group), after: null });
    for (const tell of accountsOf(tx).groupChanges()) await tell(tx, id);
  }, CONFLICT_RETRIES);
}

/** True when the user was not a member before. */
export async function addGroupMember(db: Db, groupId: string, userId: string, change: GroupChange = {}): Promise<boolean> {
  refuseUnknownNames('addGroupMember()', change, CHANGE);
  requireArguments('addGroupMember()', { db }, { db: queryable });
  return db.transaction(async (tx) => {
    await requireLocked(tx, groupId);
    if (!isUuid(userId) || (await findUserById(tx, userId)) === null) throw accountErrors.user_not_found();
    const added = await insertMember(tx, groupId, userId, accountsOf(tx).clock.now());
    if (added) await record(tx, change, { action: 'group.member_added', target_id: groupId, metadata: { user_id: userId } });
    return added;
  }, CONFLICT_RETRIES);
}

/** True when the user was a member. */
export async function removeGroupMember(db: Db, groupId: string, userId: string, change: GroupChange = {}): Promise<boolean> {
  refuseUnknownNames('removeGroupMember()', change, CHANGE);
  requireArguments('removeGroupMember()', { db }, { db: queryable });
  return db.transaction(async (tx) => {
    await requireLocked(tx, groupId);
    const removed = isUuid(userId) && (await deleteMember(tx, groupId, userId));
    if (removed) await record(tx, change, { action: 'group.member_removed', target_id: groupId, metadata: { user_id: userId } });
    return removed;
  }, CONFLICT_RETRIES);
}

/** By id or name; `tenantKey` where two tenants have a group of this name. */
export async function requireGroup(db: Db, idOrName: string, tenantKey: string | null = null): Promise<GroupRow> {
  const group = isUuid(idOrName)
    ? await findGroupById(db, idOrName.toLowerCase())
    : await findGroupByName(db, normalizeName(idOrName), tenantKey);
  if (group === null) throw accountErrors.group_not_found({ detail: `There is no group ${JSON.stringify(idOrName)}.` });
  return group;
}

async function requireLocked(tx: Db, id: string): Promise<GroupRow> {
  const group = isUuid(id) ? await lockGroup(tx, id) : null;
  if (group === null) throw accountErrors.group_not_found();
  return group;
}

function normalizeName(name: string): string {
  return name.trim().normalize('NFC');
}

function checkedName(given: string): string {
  const name = typeof given === 'string' ? normalizeName(given) : '';
  if (name === '' || name.length > NAME_MAX || hasHiddenCharacters(name))
    throw accountErrors.invalid_group({
      detail: `A group name must have 1 to ${NAME_MAX} characters, without invisible or control characters.`,
    });
  return name;
}

function asGroup(row: GroupRow | null): Group | null {
  return row === null ? null : { id: row.id, name: row.name, tenantKey: row.tenant_key === '' ? null : row.tenant_key };
}

function facts({ name, tenant_key, managed_by }: GroupRow): object {
  return { name, ...(tenant_key === '' ? {} : { tenant_key }), ...(managed_by === '' ? {} : { managed_by }) };
}

async function record(tx: Db, { by, requestId }: GroupChange, entry: Omit<AuditEntry, 'target_type' | 'actor'>): Promise<void> {
  await accountsOf(tx)
    .audit()
    ?.record(tx, [{ ...entry, target_type: 'group', actor: by ?? null, request_id: requestId ?? null }]);
}
