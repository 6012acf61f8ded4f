import type { Db } from '../../db/engine/db.ts';
import type { CompiledWhere } from '../../db/sql/where/compile-where.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import type { Policy } from '../policy/policy.ts';
import type { Context, ListAccess } from './list-access.ts';

/**
 * Reads many rows: from the replica that the controller names, where it is fresh enough for this caller, else from the primary. Rights are never
 * read from a replica. So it has to be the row itself that decides whether it is seen, for every table of the statement.
 */
export async function readFresh<R>(
  access: ListAccess,
  context: Context,
  request: CrudRequest,
  conditions: readonly CompiledWhere[],
  read: (db: Db) => Promise<R>,
): Promise<R> {
  const { policy } = access;
  const primary = policy.database(request);
  const exchange = exchangeOf(context.request);
  const { host, route } = exchange;
  const replica = exchange.replicaOf(policy.using);
  if (replica === undefined || host.replicas === null || !(await decidesByRow(access, request, conditions))) return read(primary);
  try {
    return await read(replica);
  } catch (error) {
    if (!host.replicas.isOver(error, route?.readFrom ?? '', policy.using)) throw error;
    return read(primary);
  }
}

async function decidesByRow(
  { policy, involved }: ListAccess,
  request: CrudRequest,
  conditions: readonly CompiledWhere[],
): Promise<boolean> {
  if (!conditions.every(({ isEvaluable }) => isEvaluable)) return false;
  const scopeOf = (each: Policy) => (each === policy ? each.rows.visible(request) : each.rows.ofEdge(request));
  for (const each of involved) if (!(await scopeOf(each)).compiled.isEvaluable) return false;
  return true;
}
