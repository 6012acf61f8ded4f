import type { KnownRows } from '../../db/sql/where/decided-where.ts';
import { isPeople } from '../declare/people.ts';
import type { Relations } from '../declare/relation.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import type { Policy } from '../policy/policy.ts';
import { equalities } from './equalities.ts';
import type { SharedAccess } from './shared-access.ts';

/** What of a user a list can follow. A name that changed would be found out by nothing. */
export const FOLLOWED_OF_PEOPLE: ReadonlySet<string> = new Set(['id', 'is_active']);

const NONE: KnownRows = new Map();

/** Whether a relation leads to the owner of the row. */
export function leadsToOwner({ resource, bounds: { owner } }: Policy, name: string): boolean {
  const relations = resource.relations as Relations;
  const relation = Object.hasOwn(relations, name) ? relations[name] : undefined;
  return relation?.kind === 'one' && relation.column === owner && isPeople(relation);
}

/** Relations to the owner that states of the rows depend on. */
export function peopleOfStates(policy: Policy): readonly string[] {
  const required = [...policy.derived.values()].flatMap(({ requires }) =>
    requires.flatMap((path) => (path.includes('.') ? path.split('.', 1) : [])),
  );
  return [...new Set(required)].filter((name) => leadsToOwner(policy, name));
}

/**
 * The owner of all rows of a list, where its caller sees the rows of one owner only and a state of them depends on it. Users are in a table, or a view, of a
 * module or another program, whose changes are not logged: they are asked about whenever rights are.
 */
export async function knownPeople(policy: Policy, request: CrudRequest, shared: SharedAccess): Promise<KnownRows> {
  const { users, bounds } = policy;
  const names = peopleOfStates(policy);
  if (users === null || bounds.owner === undefined || names.length === 0) return NONE;
  const owner = equalities(policy, [(await policy.rows.visible(request)).where]).get(bounds.owner);
  if (typeof owner !== 'string' && typeof owner !== 'number' && typeof owner !== 'bigint') return NONE;
  const id = String(owner);
  const isActive = await shared.isActive(users, policy.database(request), id);
  const row = isActive === null ? null : { id, is_active: isActive };
  return new Map(names.map((name) => [name, row]));
}
