import type { CompiledRoute } from '../exchange/compiled-route.ts';
import { includesKind, type Permission } from '../../permissions/permission.ts';

/** Of routes whose response depends on the tenant, though callers without one get one, too. */
export const USES_TENANT = { usesTenant: true } as const;

/**
 * Of routes for which the tenant makes no difference, though their rows may ask for it: lists of one's own tenants, the administration. Who works in a
 * suspended tenant still reaches them.
 */
export const BESIDE_TENANTS = { usesTenant: false } as const;

/** What documents, clients and requests need to know. */
export function tenantFacts(
  header: string | undefined,
  permission: Permission,
  metadata: CompiledRoute['metadata'],
): Pick<CompiledRoute, 'metadata' | 'tenantHeader' | 'isBesideTenants'> {
  const { usesTenant } = metadata;
  const needs = includesKind(permission, 'has_role') || includesKind(permission, 'has_tenant') || usesTenant === true;
  return { metadata, tenantHeader: needs ? header : undefined, isBesideTenants: usesTenant === false && !needs };
}
