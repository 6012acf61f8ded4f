import type { Permission } from './permission.ts';

const known = new WeakSet<Permission>();

/** Notes that the verdict depends on the principal, the memberships and the route, and on the object where there is one: the same caller gets the same one at any time. */
export function ofCaller<P extends Permission>(permission: P): P {
  known.add(permission);
  return permission;
}

/** Whether nothing but a change of the caller changes the verdict. Unknown of rules of the application. */
export function isOfCaller(permission: Permission): boolean {
  return permission.combinator === undefined ? known.has(permission) : permission.parts.every(isOfCaller);
}
