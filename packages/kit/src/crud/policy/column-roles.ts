import type { Policy, StoredColumn } from './policy.ts';

/** Columns that the resource sets itself, whatever its input says: tenant, owner, version and state. */
export function serverSetColumns({ tenant, owner, options }: Policy): ReadonlySet<string> {
  const names: readonly (string | undefined)[] = [tenant?.column, owner?.column, options.version, options.state];
  return new Set(names.filter((name) => name !== undefined));
}

/** Columns that clients may send when a row is made. A key that is generated is not one of them. */
export function clientColumns(policy: Policy): StoredColumn[] {
  const kept = serverSetColumns(policy);
  return policy
    .acceptedColumns()
    .filter(({ name, settings }) => !kept.has(name) && !(settings.primaryKey && settings.default !== undefined));
}
