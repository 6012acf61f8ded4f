import { randomBytes } from 'node:crypto';
import type { MemberChangeListener, UserChangeListener } from '../../../app/declare/registry.ts';
import type { ServiceUserChange, ServiceUserSource } from '../../../auth/request/service-users.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { Row } from '../../../db/declare/rows.ts';
import { findBy, insert, remove } from '../../../db/rows/repository.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { apiKeyErrors } from '../errors.ts';
import { serviceUsers } from '../models.ts';
import { keyringOf, keyrings } from '../verify/keyring.ts';

export type ServiceUser = Row<typeof serviceUsers>;

/** Each has keys and a row in every list of members. */
const SERVICE_USERS_MAX = 50;

/** In a transaction: the user, the member and the row that says what it is. */
export async function createServiceUser(
  tx: Db,
  { tenant, name, role }: { readonly tenant: string; readonly name: string; readonly role: string },
  change: ServiceUserChange & { readonly createdBy: string | null },
): Promise<ServiceUser> {
  const { clock, registry } = keyringOf(tx);
  const { members, users } = needed(tx);
  const { id: userId } = await users.create(tx, newUsername(), change);
  // Holds the tenant: of several at once, each counts the ones before.
  await members.add(tx, { tenant, userId, role }, change);
  const [row] = await tx.query<{ count: number | bigint }>('select count(*) as count from service_users where tenant_id = $1', [tenant]);
  if (Number(row?.count) >= SERVICE_USERS_MAX) throw apiKeyErrors.service_user_limit_reached({ extensions: { limit: SERVICE_USERS_MAX } });
  const created = await insert(tx, serviceUsers, {
    id: uuidv7(clock),
    tenant_id: tenant,
    user_id: userId,
    name,
    created_at: clock.now(),
    created_by: change.createdBy,
  });
  await registry.audit?.record(tx, [{ ...entryOf('created', created, change), after: { name, role, user_id: userId } }]);
  return created;
}

/** Ends the membership; what follows from it ends the keys and the user. */
export async function removeServiceUser(tx: Db, row: ServiceUser, change: ServiceUserChange): Promise<void> {
  await needed(tx).members.remove(tx, { tenant: row.tenant_id, userId: row.user_id }, change);
  await end(tx, row, change);
}

/** A service user is a member of one tenant, or it is not at all. */
export const serviceUserLeft: MemberChangeListener = async (tx, { userId, tenant }, change) => {
  // A program that opens the database without the app.
  if (keyrings.find(tx) === undefined) return;
  const row = await findBy(tx, serviceUsers, { user_id: userId });
  if (row?.tenant_id === tenant) await end(tx, row, { by: change?.by ?? null, requestId: change?.requestId ?? null });
};

/** A user that staff has deleted. */
export const serviceUserDeleted: UserChangeListener = async (tx, userId, change) => {
  if (keyrings.find(tx) === undefined) return;
  const row = await findBy(tx, serviceUsers, { user_id: userId });
  if (row === undefined || (await keyringOf(tx).users.findById(tx, userId)) !== null) return;
  await forget(tx, row, { by: change?.by ?? null, requestId: change?.requestId ?? null });
};

async function end(tx: Db, row: ServiceUser, change: ServiceUserChange): Promise<void> {
  // Once: the deletion of the user, and the end of the membership, both come here.
  if (await forget(tx, row, change)) await needed(tx).users.remove(tx, row.user_id, change);
}

async function forget(tx: Db, row: ServiceUser, change: ServiceUserChange): Promise<boolean> {
  const isGone = await remove(tx, serviceUsers, row.id);
  if (isGone)
    await keyringOf(tx).registry.audit?.record(tx, [
      { ...entryOf('deleted', row, change), before: { name: row.name, user_id: row.user_id } },
    ]);
  return isGone;
}

function entryOf(verb: 'created' | 'deleted', { id, tenant_id: tenant }: ServiceUser, { by, requestId }: ServiceUserChange) {
  return { actor: by ?? null, action: `service_user.${verb}`, target_type: 'service_user', target_id: id, tenant, request_id: requestId };
}

/** What the start has checked for every controller of service users. */
function needed(tx: Db) {
  const { usersWithoutLogin: users, tenants } = keyringOf(tx).registry;
  const members = tenants.directory?.serviceMembers;
  if (users === null || members === undefined)
    throw new Error('Service users need accounts() or betterAuth(), and tenants that a module stores.');
  return { users, members };
}

/** Says what it is wherever a user name is shown. Not what it is called: that is the tenant's to erase, and the name of a user is in entries of no tenant. */
function newUsername(): string {
  return `service-${randomBytes(8).toString('hex')}`;
}

export const serviceUserSource: ServiceUserSource = {
  async among(db, userIds) {
    const [condition, list] =
      db.dialect === 'postgres'
        ? ['= any(cast($1 as text[]))', userIds]
        : ['in (select value from json_each($1))', JSON.stringify(userIds)];
    const rows = await db.query<{ user_id: string }>(`select user_id from service_users where user_id ${condition}`, [list]);
    return new Set(rows.map(({ user_id }) => user_id));
  },
};
