import type { AdminContext, AdminResource, AdminSight } from '../app/admin/declaration.ts';
import type { App } from '../app/module.ts';
import { resourceOfTarget } from '../crud/serve/admin-access.ts';
import { quoteName } from '../db/names.ts';
import { statementsOf } from '../db/model-statements.ts';
import { accessOf, unlessRefused } from './staff-access.ts';

const NOTHING: AdminSight = { ids: new Set(), shows: () => false };

/**
 * What a staff member may know of records that another page speaks about, such as the audit log. `target`: the list that shows such records, if
 * any. Null: nothing limits it. Superusers know every record, but not the columns that the rules of a resource hide from them.
 */
export async function recordSight(
  context: AdminContext,
  targetType: string,
  ids: readonly string[],
  target: AdminResource | undefined,
): Promise<AdminSight | null> {
  const resource = resourceOfTarget(context.app as App, targetType);
  const isInSite = resource?.options.admin !== undefined;
  // A module shows the table by a list of its own, which knows who sees which records.
  if (resource === undefined || (!isInSite && target !== undefined)) {
    if (target?.isRestricted !== true || context.principal.user.is_superuser) return null;
    return { ids: new Set((await target.titles?.(context, ids))?.keys()), shows: () => true };
  }
  return unlessRefused(async () => {
    const access = await accessOf(resource, context);
    const columns = await access.columns();
    const shows = (field: string) => !Object.hasOwn(resource.model.columns as object, field) || columns.has(field);
    if (context.principal.user.is_superuser) return { ids: new Set(ids), shows };
    const { table } = statementsOf(resource.model);
    const db = context.databases[resource.options.using ?? 'default'] ?? context.db;
    const parameters: unknown[] = [];
    const condition = await access.condition(db.dialect, 't', parameters, 'any');
    if (typeof condition === 'boolean') return condition ? { ids: new Set(ids), shows } : NOTHING;
    const name = `t.${quoteName(access.keyName)}`;
    const keyText = db.dialect === 'postgres' ? `${name}::text` : `cast(${name} as text)`;
    const listed = ids.map((id) => `$${parameters.push(id)}`).join(', ');
    const rows = await db.query<{ id: string }>(
      `select ${keyText} as id from ${table} t where ${keyText} in (${listed}) and (${condition})`,
      parameters,
      { replanned: true },
    );
    return { ids: new Set(rows.map(({ id }) => id)), shows };
  }, NOTHING);
}
