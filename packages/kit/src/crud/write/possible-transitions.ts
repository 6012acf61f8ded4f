import type { Db } from '../../db/db.ts';
import { allowedOperations } from '../read/allowed-operations.ts';
import { callerOf, type CrudRequest } from '../policy/crud-request.ts';
import type { Policy } from '../policy/policy.ts';
import type { Item } from '../declare/item.ts';
import type { TransitionRule } from '../declare/transition-rule.ts';

export interface PossibleTransition {
  readonly name: string;
  readonly to: unknown;
}

export function transitionRulesOf({ options }: Pick<Policy, 'options'>): Readonly<Record<string, TransitionRule>> {
  return (options.transitions ?? {}) as unknown as Readonly<Record<string, TransitionRule>>;
}

/** What the state, the guard, the permission and the access of each transition let the caller do to the row now, whatever a controller offers. */
export async function possibleTransitions(
  policy: Policy,
  request: CrudRequest,
  row: Item,
  db: Db = policy.database(request),
): Promise<PossibleTransition[]> {
  const state = policy.options.state as string;
  const items: PossibleTransition[] = [];
  const possible = Object.entries(transitionRulesOf(policy)).filter(([, { from }]) => from.includes(row[state]));
  const names = possible.map(([name]) => name);
  const allowed = await allowedOperations(policy, request, row, names, db);
  for (const [name, { to, permission, guard }] of possible) {
    if (!allowed.has(name)) continue;
    if (permission !== undefined && (await permission.evaluate(request.context, row)) !== true) continue;
    if (guard !== undefined && guard(row, callerOf(request)) !== true) continue;
    items.push({ name, to });
  }
  return items;
}
