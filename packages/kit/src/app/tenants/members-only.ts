import { coreErrors } from '../../errors/core-errors.ts';
import type { Middleware } from '../../http/exchange/middleware.ts';

/**
 * Documents what every operation of known callers may be refused with where the app knows memberships: any request can name a tenant, and a key that is for
 * one names it with each. Does nothing else: the tenant is found and proved where it is asked for.
 */
export const membersOnly: Middleware = {
  name: 'tenant',
  appliesTo: ({ authenticators }) => authenticators.length > 0,
  documents: { raises: [coreErrors.tenant_conflict, coreErrors.not_a_member, coreErrors.tenant_suspended] },
};
