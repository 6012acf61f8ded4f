import type { CompiledRoute } from '../http/compiled-route.ts';
import { safeMethods } from '../permissions/built-ins.ts';
import { includesKind, type Permission, type Verdict } from '../permissions/permission.ts';

const DENIED_TO_ANONYMOUS: ReadonlySet<string> = new Set([
  'deny_all',
  'is_authenticated',
  'is_staff',
  'is_superuser',
  'is_owner',
  'has_scopes',
]);

/** What the permission says of a caller nobody knows, from its shape alone; rules of the application are unknown. */
function anonymousVerdict(permission: Permission, method: string): Verdict {
  const parts = permission.parts.map((part) => anonymousVerdict(part, method));
  switch (permission.combinator) {
    case 'all':
      return parts.includes(false) ? false : parts.includes('unknown') ? 'unknown' : true;
    case 'any':
      return parts.includes(true) ? true : parts.includes('unknown') ? 'unknown' : false;
    case 'not':
      return parts[0] === 'unknown' || parts[0] === undefined ? 'unknown' : !parts[0];
    default:
      if (permission.kind === 'allow_any') return true;
      if (permission.kind === 'is_read_only') return safeMethods.has(method);
      return DENIED_TO_ANONYMOUS.has(permission.kind ?? '') ? false : 'unknown';
  }
}

export function admitsAnonymous(route: CompiledRoute): boolean {
  return anonymousVerdict(route.permission, route.method) !== false;
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

/** Any one of the authenticators may identify the caller; `{}` where nobody has to be. */
export function securityOf(route: CompiledRoute): readonly Readonly<Record<string, readonly string[]>>[] {
  const scopes = needsScope(route) && route.scope !== undefined ? [route.scope] : [];
  const ways = route.authenticators.map((authenticator) => ({ [authenticator.name]: scopes }));
  return admitsAnonymous(route) ? [...ways, {}] : ways;
}
