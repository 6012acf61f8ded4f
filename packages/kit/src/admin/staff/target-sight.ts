import type { AdminContext, AdminResource, AdminSight } from '../../app/admin/declaration.ts';
import type { App } from '../../app/declare/module.ts';
import { resourceOfTarget } from '../../crud/staff/admin-access.ts';
import { STAFF } from '../../crud/declare/resource.ts';
import { recordSight } from '../../crud/staff/record-sight.ts';

/**
 * What a staff member may know of records that another page speaks about, such as the audit log. `target`: the list that shows such records, if
 * any. Null: nothing limits it.
 */
export async function targetSight(
  context: AdminContext,
  targetType: string,
  ids: readonly string[],
  target: AdminResource | undefined,
): Promise<AdminSight | null> {
  const app = context.app as App;
  const { principal, requestId, databases } = context;
  const resource = resourceOfTarget(app, targetType);
  const isInSite = resource?.options.audiences?.[STAFF] !== undefined;
  // A module shows the table by a list of its own, which knows who sees which records.
  if (resource === undefined || (!isInSite && target !== undefined)) {
    if (target?.isRestricted !== true || principal.user.is_superuser) return null;
    return { ids: new Set((await target.titles?.(context, ids))?.keys()), shows: () => true };
  }
  return recordSight(app, resource, { user: principal.user, principal, tenant: await context.tenant(), requestId, databases }, ids);
}
