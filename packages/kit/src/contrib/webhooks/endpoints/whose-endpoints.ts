import { tenantOwner } from '../../../app/tenants/tenant-owner.ts';
import type { CrudCaller } from '../../../crud/declare/crud-caller.ts';

/** Statics of a controller of endpoints. */
interface EndpointControllerOptions {
  readonly tenantOwned: boolean;
}

/** Whose endpoints a controller serves: those of the tenant of the request, or those that its user has there. Undefined: nobody's. */
export function endpointOwner({ user, tenant, controller }: Pick<CrudCaller, 'user' | 'tenant' | 'controller'>): string | undefined {
  const { tenantOwned = false } = (controller ?? {}) as Partial<EndpointControllerOptions>;
  if (tenantOwned) return tenant === null || tenant === '' ? undefined : tenantOwner(tenant);
  return user?.is_active === true ? user.id : undefined;
}
