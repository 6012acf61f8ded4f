import type { Db } from '../../db/engine/db.ts';
import { announceTableWrite } from '../../db/rows/table-writes.ts';
import { type AnyResource, isResource } from '../declare/resource.ts';
import { requireArguments } from '../../options/read-options.ts';
import { aList, queryable, rule } from '../../options/value-rule.ts';

const aResource = rule('what resource() of kit/crud returns', isResource);

/**
 * Announces rows of a resource that were written without it, by a worker or by SQL: in the transaction that writes them, and told when it commits.
 * Without it, a response cache sends what it has until its age is over. Writes of the resource, its actions and its verbs announce themselves.
 *
 * @example
 * ```ts
 * await db.transaction(async (tx) => {
 *   const paid = await tx.query<{ id: string }>(`update orders set status = 'paid' where margin = 0 returning id`);
 *   await touched(tx, orderResource, paid.map(({ id }) => id));
 * });
 * ```
 */
export async function touched(tx: Db, resource: AnyResource, keys: readonly unknown[]): Promise<void> {
  requireArguments('touched()', { tx, resource, keys }, { tx: queryable, resource: aResource, keys: aList });
  if (keys.length > 0) await announceTableWrite(tx, (resource.model as { readonly name: string }).name);
}
