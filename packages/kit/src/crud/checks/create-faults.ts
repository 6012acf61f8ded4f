import type { Fault } from '../../options/fault.ts';
import { clientColumns, serverSetColumns } from '../policy/column-roles.ts';
import type { Policy } from '../policy/policy.ts';

/** Columns that a resource takes from clients. */
export function inputNames(policy: Policy): string[] {
  return clientColumns(policy).map(({ name }) => name);
}

/** A required column that is never set would fail at the first create. `parent`: the column that the address sets. */
export function createFaults(
  policy: Policy,
  place: string,
  parent: string | undefined,
  input: readonly string[] = inputNames(policy),
): Fault[] {
  const { options, statements } = policy;
  if (options.hooks?.create !== undefined) return [];
  const filled = new Set([...input, ...serverSetColumns(policy)]);
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
