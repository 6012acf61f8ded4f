import { guardResult } from './steps.ts';
import type { Db } from '../../db/engine/db.ts';
import { allowedOperations } from '../read/allowed-operations.ts';
import { callerOf, type CrudRequest } from '../policy/crud-request.ts';
import type { Policy } from '../policy/policy.ts';
import type { Item } from '../declare/item.ts';
import type { TransitionRule } from '../declare/action-rule.ts';

export interface PossibleTransition {
  readonly name: string;
  readonly to: unknown;
}

export function transitionRulesOf({ options }: Pick<Policy, 'options'>): Readonly<Record<string, TransitionRule>> {
  return (options.transitions ?? {}) as unknown as Readonly<Record<string, TransitionRule>>;
}

/** A transition that the caller can make now, or why not. */
interface TransitionVerdict extends PossibleTransition {
  /** Null: it is possible. */
  readonly refusal: (() => string | Promise<string>) | null;
}

/** What the state, the guard, the permission and the access of each transition let the caller do to the row now, whatever a controller offers. */
async function transitionVerdicts(policy: Policy, request: CrudRequest, row: Item, db: Db): Promise<TransitionVerdict[]> {
  const state = row[policy.options.state as string];
  const rules = Object.entries(transitionRulesOf(policy));
  const names = rules.flatMap(([name, { from }]) => (from.includes(state) ? [name] : []));
  const allowed = await allowedOperations(policy, request, row, names, db);
  const verdicts: TransitionVerdict[] = [];
  for (const [name, rule] of rules) verdicts.push({ name, to: rule.to, refusal: await refusalOf(name, rule) });
  return verdicts;

  async function refusalOf(name: string, { from, permission, guard }: TransitionRule): Promise<TransitionVerdict['refusal']> {
    if (!from.includes(state)) return () => `Possible from ${from.join(' or ')}; the state is ${String(state)}.`;
    if (!allowed.has(name)) return () => NO_ACCESS;
    if (permission !== undefined && (await permission.evaluate(request.context, row)) !== true)
      return async () => (await permission.denial(request.context, row)).detail;
    const guarded = guard === undefined || guardResult(policy, name, guard(row, callerOf(request)));
    return guarded === true ? null : () => (typeof guarded === 'string' ? guarded : GUARDED);
  }
}

const NO_ACCESS = 'Your access to this record does not include it. Whoever can share the record can change that.';
const GUARDED = 'A rule of the application does not allow it for this record now.';

export async function possibleTransitions(
  policy: Policy,
  request: CrudRequest,
  row: Item,
  db: Db = policy.database(request),
): Promise<PossibleTransition[]> {
  const verdicts = await transitionVerdicts(policy, request, row, db);
  return verdicts.flatMap(({ name, to, refusal }) => (refusal === null ? [{ name, to }] : []));
}

/** By name, why the caller cannot make a transition now; those that are possible are not in it. */
export async function refusedTransitions(policy: Policy, request: CrudRequest, row: Item): Promise<Readonly<Record<string, string>>> {
  const verdicts = await transitionVerdicts(policy, request, row, policy.database(request));
  const refused: Record<string, string> = {};
  for (const { name, refusal } of verdicts) if (refusal !== null) refused[name] = await refusal();
  return refused;
}
