import type { Db } from '../../db/engine/db.ts';
import { appsOfDatabase } from '../../app/data/apps-of-database.ts';
import type { Model } from '../../db/declare/model.ts';
import { announceTableWrite } from '../../db/rows/table-writes.ts';
import { policiesOf } from '../policy/policies.ts';
import { logTouched, wakeReaders } from './change-log.ts';
import { type AnyResource, isResource } from '../declare/resource.ts';
import { requireArguments } from '../../options/read-options.ts';
import { aList, queryable, rule } from '../../options/value-rule.ts';

const aResource = rule('what resource() of kit/crud returns', isResource);

/**
 * Announces rows of a resource that were written without it, by a worker or by SQL: in the transaction that writes them, and told when it commits.
 * Without it, a response cache sends what it has until its age is over, and live lists do not change. Writes of the resource, its actions and its verbs announce themselves.
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
  if (keys.length === 0) return;
  await announceTouched(tx, resource);
  const model = resource.model as unknown as Model;
  const logged = appsOfDatabase(tx.database)
    .flatMap((app) => policiesOf(app).find(model) ?? [])
    .find(({ isLogged }) => isLogged);
  if (logged === undefined) return;
  if (logged.isTriggered) wakeReaders(tx);
  else await logTouched(tx, logged, keys);
}

/** Drops the responses that caches made of the table, when the transaction commits. */
export async function announceTouched(tx: Db, { model }: AnyResource): Promise<void> {
  await announceTableWrite(tx, (model as { readonly name: string }).name);
}
