import type { Permission, PermissionContext } from '../../permissions/permission.ts';
import type { Item } from '../declare/item.ts';
import type { Policy } from './policy.ts';

/** Why a column is not among those that a caller can write. */
export interface Unwritable {
  /** `unknown`: the rule depends on the row, and none was given. */
  readonly verdict: false | 'unknown';
  readonly permission: Permission;
}

/**
 * The columns among `names` that `writableBy` does not let this caller write. The only place that asks these rules. They are no part of a view: callers
 * who see the same share one, and reads would be split by what a caller may write.
 */
export async function unwritableColumns(
  policy: Policy,
  context: PermissionContext,
  names: Iterable<string>,
  row?: Item,
): Promise<ReadonlyMap<string, Unwritable>> {
  const found = new Map<string, Unwritable>();
  for (const name of names) {
    const permission = policy.ruleOf(name)?.writableBy;
    if (permission === undefined) continue;
    const verdict = await permission.evaluate(context, row);
    if (verdict !== true) found.set(name, { verdict, permission });
  }
  return found;
}
