import { sameId } from '../../../auth/people/same-id.ts';
import type { User } from '../../../auth/people/principal.ts';
import { STANDING_SCHEME } from '../../../app/declare/standing.ts';
import type { Db } from '../../../db/engine/db.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { EVERY_TENANT } from '../key/api-key.ts';
import { keyringOf } from '../verify/keyring.ts';

/**
 * The tenant that a key of the owner is for, as it is stored. Not given: the only tenant that the owner is a member of; an empty string for an owner in
 * none. Null, for a key that is not bound, only where nobody can list the tenants.
 */
export async function tenantOfKey(tx: Db, ownerId: string, given: string | null | undefined): Promise<string | null> {
  const { tenants } = keyringOf(tx).registry;
  if (given === null) return tenants.exist ? '' : null;
  if (given === EVERY_TENANT) return EVERY_TENANT;
  if (given !== undefined && given !== '') return tenantOfMember(tx, ownerId, given);
  if (!tenants.exist || tenants.directory === null) return null;
  const [only, other] = await tenants.directory.ofUser(tx, ownerId, 2);
  if (other !== undefined)
    throw coreErrors.tenant_required({
      detail: 'The owner of the key is a member of several tenants: name the one that the key is for.',
    });
  return only ?? '';
}

async function tenantOfMember(tx: Db, ownerId: string, name: string): Promise<string> {
  const { registry, users } = keyringOf(tx);
  const { exist, directory } = registry.tenants;
  if (!exist) return name;
  if (directory === null) {
    const [standing] = await registry.standings.of(tx, [{ userId: ownerId, tenant: name }]);
    if (standing?.ok === true || standing?.why === 'not_known' || standing?.why === 'inactive') return name;
    throw notAMember();
  }
  const user = await users.findById(tx, ownerId);
  const found = user === null ? null : await namedTenant(tx, user, name);
  if (found === null) throw notAMember();
  return found;
}

/** The id of the tenant with this slug or id that the user is a member of. */
async function namedTenant(tx: Db, user: User, name: string): Promise<string | null> {
  const { directory } = keyringOf(tx).registry.tenants;
  const found = await directory?.named({ db: tx, principal: { user, scheme: STANDING_SCHEME, scopes: null }, names: [name] });
  return found?.get(name)?.tenant ?? null;
}

function notAMember() {
  return coreErrors.not_a_member({ detail: 'The owner of the key is not a member of this tenant.' });
}

/** Binds a key that is not bound. One that is cannot be moved to another tenant: whoever has it would get there. */
export async function bindingChange(
  tx: Db,
  { owner_id, tenant_id }: { readonly owner_id: string; readonly tenant_id: string | null },
  given: string | null | undefined,
): Promise<{ readonly tenant_id?: string | null }> {
  if (given === undefined && tenant_id !== null) return {};
  const wanted = await tenantOfKey(tx, owner_id, given);
  if (tenant_id !== null && wanted !== null && sameId(tenant_id, wanted)) return {};
  if (tenant_id !== null) throw coreErrors.tenant_conflict({ detail: 'The key is for another tenant already. Create a new key.' });
  return wanted === null ? {} : { tenant_id: wanted };
}
