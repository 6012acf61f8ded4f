import { Permission } from '../../permissions/permission.ts';
import { tenantRequired } from '../../permissions/tenant-required.ts';

/** Rows of a tenant are for callers who have one: 403 `tenant_required` before the body is read. Programs are asked with the rows. */
export const hasTenant = new Permission({
  name: 'hasTenant',
  kind: 'has_tenant',
  evaluate(context) {
    const { tenant } = context;
    // A list of tools asks before a call names the tenant.
    const verdict = (settled: string | null) => (context.takesTenant === true ? 'unknown' : settled !== null);
    return tenant instanceof Promise ? tenant.then(verdict) : verdict(tenant);
  },
  denial: tenantRequired,
});
