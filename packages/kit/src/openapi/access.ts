import type { CompiledRoute } from '../http/compiled-route.ts';
import { safeMethods } from '../permissions/built-ins.ts';
import { admitsAnonymous as admitsAnonymousCaller } from '../permissions/admits-anonymous.ts';
import { includesKind } from '../permissions/permission.ts';

export function admitsAnonymous({ permission, method }: CompiledRoute): boolean {
  return admitsAnonymousCaller(permission, method);
}

export function needsScope(route: CompiledRoute): boolean {
  return route.scope !== undefined && includesKind(route.permission, 'has_scopes');
}

/** A cookie is sent by the browser itself, so unsafe methods may be refused for want of proof. */
export function needsCsrfProof(route: CompiledRoute): boolean {
  return (
    route.csrf && !safeMethods.has(route.method) && route.authenticators.some((authenticator) => authenticator.verifyCsrf !== undefined)
  );
}

/** Any one of the authenticators may identify the caller; `{}` where no credentials are required. */
export function securityOf(route: CompiledRoute): readonly Readonly<Record<string, readonly string[]>>[] {
  const scopes = needsScope(route) && route.scope !== undefined ? [route.scope] : [];
  const ways = route.authenticators.map((authenticator) => ({ [authenticator.name]: scopes }));
  return admitsAnonymous(route) ? [...ways, {}] : ways;
}
