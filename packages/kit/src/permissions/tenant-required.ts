import { coreErrors } from '../errors/core-errors.ts';
import type { KitError } from '../errors/kit-error.ts';
import type { PermissionContext } from './permission.ts';

/** 403 for a request without a tenant, with the sentence how this app's requests name one. */
export function tenantRequired({ namesTenant }: Pick<PermissionContext, 'namesTenant'>): KitError {
  return coreErrors.tenant_required(
    namesTenant === undefined || namesTenant === ''
      ? {}
      : { detail: `A tenant is required. Name one that you are a member of ${namesTenant}, by its slug or id.` },
  );
}
