import type { Principal, User } from '../../auth/people/principal.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import { isMembers, isPlainObject } from '../../options/value-rule.ts';
import type { CrudCaller } from '../declare/crud-caller.ts';
import type { Policy } from '../policy/policy.ts';

/**
 * Misspelt columns of the conditions that `rows` returns: types see them in literals only, and the first request would fail. The function is
 * asked about callers that do not exist. It is not judged where it fails for them, reads something first, or uses services.
 */
export function rowsFaults(policy: Policy, place: string): Fault[] {
  const rows = policy.options.rows as ((caller: CrudCaller<User>) => unknown) | undefined;
  if (typeof rows !== 'function') return [];
  const found = new Map<string, Fault>();
  for (const caller of callersAt(new Date(0)))
    for (const { name, holder } of unknownNames(policy, conditionFor(rows, caller))) {
      const known = [...holder.statements.byName.keys(), ...Object.keys(holder.resource.relations as object)];
      const message = `${place}: rows returns a condition on "${name}", which is not a column or relation of "${holder.model.name}".`;
      found.set(message, { id: 'E012', message, hint: didYouMean(name, known).trim() || `Known: ${known.join(', ')}.` });
    }
  return [...found.values()];
}

/** An id that no row has. */
const NO_ID = '00000000-0000-7000-8000-000000000000';
const userOf = (isStaff: boolean): User => ({
  id: NO_ID,
  username: '',
  email: null,
  is_active: true,
  is_staff: isStaff,
  is_superuser: isStaff,
});

/** Conditions that `rows` returns for callers that do not exist. One that is not known at startup is left out. */
export function rowsConditions(policy: Policy, now: Date): unknown[] {
  const rows = policy.options.rows as ((caller: CrudCaller<User>) => unknown) | undefined;
  if (typeof rows !== 'function') return [];
  return callersAt(now)
    .map((caller) => conditionFor(rows, caller))
    .filter((where) => !(where instanceof Promise));
}

const callersAt = (now: Date): readonly CrudCaller<User>[] =>
  [false, true].flatMap((isStaff) =>
    ['list', 'update'].map((action): CrudCaller<User> => {
      const user = userOf(isStaff);
      const principal: Principal = { user, scheme: 'none', scopes: null };
      return {
        user,
        principal,
        tenant: NO_ID,
        action,
        audience: null,
        controller: null,
        now,
        get services(): never {
          throw new Error('No services are at hand at startup.');
        },
      };
    }),
  );

function conditionFor(rows: (caller: CrudCaller<User>) => unknown, caller: CrudCaller<User>): unknown {
  try {
    const condition = rows(caller);
    // What fails later fails for a caller that does not exist.
    if (condition instanceof Promise) condition.catch(() => undefined);
    return condition;
  } catch {
    return undefined;
  }
}

interface UnknownName {
  readonly name: string;
  readonly holder: Policy;
}

/** Names of a condition that the model does not have, at any depth. Values are not looked at: they are those of nobody. */
function unknownNames(policy: Policy, where: unknown): UnknownName[] {
  if (Array.isArray(where)) return where.flatMap((each) => unknownNames(policy, each));
  if (!isPlainObject(where)) return [];
  return Object.entries(where).flatMap(([name, inner]): UnknownName[] => {
    if (name === 'and' || name === 'or' || name === 'not') return unknownNames(policy, inner);
    if (policy.statements.byName.has(name)) return [];
    if (!Object.hasOwn(policy.resource.relations as object, name)) return [{ name, holder: policy }];
    const target = policy.edge(name)?.target;
    return target === undefined || !isMembers(inner) ? [] : Object.values(inner).flatMap((each) => unknownNames(target, each));
  });
}
