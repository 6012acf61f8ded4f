import type { CompiledRoute } from '../http/exchange/compiled-route.ts';
import { safeMethods } from '../permissions/built-ins.ts';
import { admitsAnonymous as admitsAnonymousCaller } from '../permissions/admits-anonymous.ts';
import { includesKind } from '../permissions/permission.ts';

export function admitsAnonymous({ permission, method }: CompiledRoute): boolean {
  return admitsAnonymousCaller(permission, method);
}

export function needsScope(route: CompiledRoute): boolean {
  return route.scope !== undefined && includesKind(route.permission, 'has_scopes');
}

/** Staff whose second factor is missing are told so. */
export function needsStaff({ permission }: CompiledRoute): boolean {
  return includesKind(permission, 'is_staff') || includesKind(permission, 'is_superuser');
}

/** A role is one in a tenant: a caller without a tenant learns that. */
export function needsRole({ permission }: CompiledRoute): boolean {
  return includesKind(permission, 'has_role');
}

export function needsRecentLogin({ permission }: CompiledRoute): boolean {
  return includesKind(permission, 'has_recent_login');
}

/** A cookie is sent by the browser itself, so unsafe methods may be refused for want of proof. */
export function needsCsrfProof(route: CompiledRoute): boolean {
  return (
    route.csrf && !safeMethods.has(route.method) && route.authenticators.some((authenticator) => authenticator.verifyCsrf !== undefined)
  );
}

/**
 * Any one of the authenticators may identify the caller; `{}` where no credentials are required. Scopes are beside it (`x-scope`): OpenAPI knows
 * them in OAuth schemes only.
 */
export function securityOf(route: CompiledRoute): readonly Readonly<Record<string, readonly string[]>>[] {
  const ways = route.authenticators.map((authenticator) => ({ [authenticator.name]: [] }));
  return admitsAnonymous(route) ? [...ways, {}] : ways;
}
