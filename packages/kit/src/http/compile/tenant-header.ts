import { includesKind, type Permission } from '../../permissions/permission.ts';

/** Of routes whose response depends on the tenant, though callers without one get one, too. */
export const USES_TENANT = { usesTenant: true } as const;

/** The header by which requests of the route name their tenant; undefined where the tenant makes no difference, or the app declares no header. */
export function tenantHeaderOf(
  header: string | undefined,
  permission: Permission,
  metadata: Readonly<Record<string, unknown>>,
): string | undefined {
  const needs = includesKind(permission, 'has_role') || includesKind(permission, 'has_tenant') || metadata['usesTenant'] === true;
  return needs ? header : undefined;
}
