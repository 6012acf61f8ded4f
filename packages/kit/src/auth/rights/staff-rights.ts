import type { Principal } from '../people/principal.ts';

/**
 * Without the second factor that staff need, a principal has no staff rights, whichever authenticator made it: everything that asks for
 * `is_staff` or `is_superuser` asks these flags.
 */
export function withStaffRights(principal: Principal): Principal {
  const { user, secondFactor } = principal;
  if (secondFactor !== 'missing' || (!user.is_staff && !user.is_superuser)) return principal;
  return { ...principal, user: { ...user, is_staff: false, is_superuser: false } };
}
