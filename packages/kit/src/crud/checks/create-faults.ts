import type { Fault } from '../../options/fault.ts';
import type { Policy } from '../policy/policy.ts';

/** Columns that a resource takes from clients. */
export function inputNames(policy: Policy): string[] {
  const { options, statements, owner, tenant } = policy;
  const kept = new Set([tenant?.column, options.version, options.state, owner?.column]);
  return statements.columns.filter((column) => policy.accepts(column) && !kept.has(column.name)).map(({ name }) => name);
}

/** A required column that is never set would fail at the first create. `parent`: the column that the address sets. */
export function createFaults(
  policy: Policy,
  place: string,
  parent: string | undefined,
  input: readonly string[] = inputNames(policy),
): Fault[] {
  const { options, statements, owner, tenant } = policy;
  if (options.hooks?.create !== undefined) return [];
  const filled = new Set([...input, tenant?.column, owner?.column, options.state].filter((name) => name !== undefined));
  return statements.columns
    .filter(
      ({ name, settings, nullable }) =>
        !nullable && settings.default === undefined && settings.dbDefault === undefined && !filled.has(name) && name !== parent,
    )
    .map(({ name }) => ({
      id: 'E015',
      message: `${place}: nothing sets the required column "${name}" when a row is made.`,
      hint: 'Put it into input, give it a default, or set it in hooks.create.',
    }));
}
