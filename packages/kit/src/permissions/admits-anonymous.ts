import { safeMethods } from './built-ins.ts';
import type { Permission, Verdict } from './permission.ts';

const DENIED_TO_ANONYMOUS: ReadonlySet<string> = new Set([
  'deny_all',
  'is_authenticated',
  'is_staff',
  'is_superuser',
  'is_owner',
  'has_scopes',
]);

/** What a permission says whatever the request is, from its shape alone; what leaves cannot say is unknown. */
function verdictOfShape(permission: Permission, leaf: (kind: string) => Verdict): Verdict {
  const parts = permission.parts.map((part) => verdictOfShape(part, leaf));
  switch (permission.combinator) {
    case 'all':
      return parts.includes(false) ? false : parts.includes('unknown') ? 'unknown' : true;
    case 'any':
      return parts.includes(true) ? true : parts.includes('unknown') ? 'unknown' : false;
    case 'not':
      return parts[0] === 'unknown' || parts[0] === undefined ? 'unknown' : !parts[0];
    default:
      return leaf(permission.kind ?? '');
  }
}

/** What the permission says of an anonymous caller; rules of the application are unknown. */
function anonymousVerdict(permission: Permission, method: string): Verdict {
  return verdictOfShape(permission, (kind) => {
    if (kind === 'allow_any') return true;
    if (kind === 'is_read_only') return safeMethods.has(method);
    return DENIED_TO_ANONYMOUS.has(kind) ? false : 'unknown';
  });
}

/** Whether nobody is ever let in: `denyAll`, alone or in a combination that leaves nothing else. */
export function surelyDeniesEveryone(permission: Permission, method: string): boolean {
  const verdict = verdictOfShape(permission, (kind) => {
    if (kind === 'is_read_only') return safeMethods.has(method);
    return kind === 'deny_all' ? false : kind === 'allow_any' ? true : 'unknown';
  });
  return verdict === false;
}

/** Whether callers without credentials are let in, whatever the rules of the application say. */
export function surelyAdmitsAnonymous(permission: Permission, method: string): boolean {
  return anonymousVerdict(permission, method) === true;
}

/** Whether callers without credentials may be let in, as far as the declaration can tell: what is unknown counts as yes. */
export function admitsAnonymous(permission: Permission, method: string): boolean {
  return anonymousVerdict(permission, method) !== false;
}
