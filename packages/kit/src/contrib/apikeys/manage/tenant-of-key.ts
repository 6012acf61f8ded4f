import { sameId } from '../../../auth/people/same-id.ts';
import { tenantOfMember } from '../../../app/tenants/tenant-of-member.ts';
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
  if (given !== undefined && given !== '') return tenantOfOwner(tx, ownerId, given);
  if (!tenants.exist || tenants.directory === null) return null;
  const [only, other] = await tenants.directory.ofUser(tx, ownerId, 2);
  if (other !== undefined)
    throw coreErrors.tenant_required({
      detail:
        'The owner of the key is a member of several tenants: name the one that the key is for with `tenant` (`--tenant`), or "*" for all of them.',
    });
  return only ?? '';
}

async function tenantOfOwner(tx: Db, ownerId: string, name: string): Promise<string> {
  const found = await tenantOfMember(tx, keyringOf(tx), ownerId, name);
  if (found === null) throw notAMember();
  return found;
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
