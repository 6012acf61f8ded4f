import { safeMethods } from './built-ins.ts';
import type { Permission, Verdict } from './permission.ts';

const DENIED_TO_ANONYMOUS: ReadonlySet<string> = new Set([
  'deny_all',
  'is_authenticated',
  'is_staff',
  'is_superuser',
  'is_owner',
  'has_scopes',
  'has_role',
]);

/** What the permission says of an anonymous caller, from its shape alone; rules of the application are unknown. */
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

/** Whether callers without credentials are let in, whatever the rules of the application say. */
export function surelyAdmitsAnonymous(permission: Permission, method: string): boolean {
  return anonymousVerdict(permission, method) === true;
}

/** True if anonymous callers may be admitted; 'unknown' counts as true. */
export function admitsAnonymous(permission: Permission, method: string): boolean {
  return anonymousVerdict(permission, method) !== false;
}
