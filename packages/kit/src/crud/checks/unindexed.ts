import type { Policy } from '../policy/policy.ts';
import type { MountedResource } from '../mount/mounted-resource.ts';

/** A column that lists are filtered, ordered or joined by, and no index begins with. */
export interface UnindexedColumn {
  readonly table: string;
  readonly column: string;
  /** `owner`, `tenant`, `filter`, `ordering`, or the relation that needs it. */
  readonly usedBy: string;
  readonly isRelation: boolean;
}

/** What W008 is about: columns of declared filters, orderings and relations that no index serves. */
export function unindexedColumns({ policy, options, list, parent }: MountedResource): UnindexedColumn[] {
  // Lists below a record read the rows of that one.
  const below = parent === undefined ? [] : [parent.edge.column];
  const found: UnindexedColumn[] = [];
  const add = (owner: Policy, column: string, usedBy: string, isRelation = false) => {
    // A name that is no column is reported for itself.
    if (owner.statements.byName.has(column) && !isIndexed(owner, column, owner === policy ? below : []))
      found.push({ table: owner.model.name, column, usedBy, isRelation });
  };
  // Every list of a caller reads the rows of one owner, or of one tenant.
  const { owner, tenant } = policy.bounds;
  if (owner !== undefined) add(policy, owner, 'owner');
  else if (tenant !== undefined) add(policy, tenant, 'tenant');
  for (const [name, operators] of Object.entries(options.filters ?? {})) {
    // `contains`, `ends` and conditions of the app's own are no use of an index.
    const isServed = Array.isArray(operators) && operators.some((each) => each !== 'contains' && each !== 'ends');
    if (isServed && policy.statements.byName.has(name)) add(policy, name, 'filter');
  }
  for (const name of list.ordering?.by ?? []) add(policy, name, 'ordering');
  for (const name of Object.keys(policy.resource.relations as object)) {
    const edge = policy.edge(name);
    if (edge?.kind === 'many') add(edge.target, edge.column, `relation ${name}`, true);
  }
  return [...new Map(found.map((each) => [`${each.table}.${each.column}`, each])).values()];
}

/** An index serves a column that it begins with, or that follows the columns which are fixed: tenant and owner of the policy, and those given. */
export function isIndexed({ model, bounds, key, statements }: Policy, name: string, given: readonly string[] = []): boolean {
  if (name === key.name || statements.column(name).settings.unique) return true;
  const fixed = new Set([bounds.tenant, bounds.owner, ...given]);
  return model.table.indexes.some(({ columns }) => {
    for (const each of columns) {
      const column = each.replace(/^-/, '');
      if (column === name) return true;
      if (!fixed.has(column)) return false;
    }
    return false;
  });
}
