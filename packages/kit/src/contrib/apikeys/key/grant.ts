import type { User } from '../../../auth/people/principal.ts';
import type { FieldError } from '../../../errors/kit-error.ts';
import { isScope, scopeCovers } from '../../../permissions/scope.ts';

/** The scopes a user may put on a key when the controller names none: what some mounted route asks for; wildcards for staff only. */
export function defaultGrantable(routeScopes: readonly string[], user: Pick<User, 'is_staff'>): readonly string[] {
  return user.is_staff ? ['*'] : routeScopes;
}

/**
 * One fault per scope outside `grantable`, at its place in the body. `orders:*` in the list covers `orders:read`; a wildcard is only
 * covered by itself or a wider one, so `*` must be listed to be granted.
 */
export function grantFaults(scopes: readonly string[], grantable: readonly string[]): FieldError[] {
  return scopes.flatMap((scope, index) =>
    // What is no scope at all is another fault, reported as such.
    !isScope(scope) || scopeCovers(grantable, scope)
      ? []
      : [{ location: ['body', 'scopes', index], code: 'scope_not_grantable', message: `The scope "${scope}" is not yours to grant.` }],
  );
}
