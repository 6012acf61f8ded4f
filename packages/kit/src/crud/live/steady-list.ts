import type { Permission } from '../../permissions/permission.ts';
import { isOfCaller } from '../../permissions/of-caller.ts';
import type { MountedResource } from '../mount/mounted-resource.ts';
import type { Policy } from '../policy/policy.ts';
import { peopleOfStates } from './known-people.ts';

/**
 * Whether a caller keeps the rows and fields of a list while it stays the same: then its rights need not be asked again. A caller whose credential, memberships
 * or tenant change loses its streams anyway. Not so where a function of the application, grants, a parent or the owner decides.
 */
export function isSteady({ policy, involved, parent }: MountedResource, permission: Permission): boolean {
  return parent === undefined && isOfCaller(permission) && [policy, ...involved].every(hasSteadyFields) && hasSteadyRows(policy);
}

function hasSteadyFields({ permissions }: Policy): boolean {
  return permissions.every(isOfCaller);
}

function hasSteadyRows(policy: Policy): boolean {
  const { owner, tenant, options, audienceRule } = policy;
  const exceptions = [owner?.unless, tenant?.unless].filter((each) => each !== undefined);
  return (
    options.access === undefined &&
    typeof (audienceRule ?? options).rows !== 'function' &&
    exceptions.every(isOfCaller) &&
    peopleOfStates(policy).length === 0
  );
}
