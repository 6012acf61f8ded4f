import { Permission } from '../../permissions/permission.ts';
import { tenantRequired } from '../../permissions/tenant-required.ts';

/** Rows of a tenant are for callers who have one: 403 `tenant_required` before the body is read. Programs are asked with the rows. */
export const hasTenant = new Permission({
  name: 'hasTenant',
  kind: 'has_tenant',
  evaluate(context) {
    const { tenant } = context;
    return tenant instanceof Promise ? tenant.then((settled) => settled !== null) : tenant !== null;
  },
  denial: tenantRequired,
});
