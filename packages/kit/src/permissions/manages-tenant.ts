import type { User } from '../auth/people/principal.ts';
import { defaultDenial, Permission } from './permission.ts';
import { ofCaller } from './of-caller.ts';
import { tenantRequired } from './tenant-required.ts';

/** Where the tenants of an app do not say which roles manage them. */
const MANAGERS: readonly string[] = ['owner', 'admin'];

/** The caller has a role that manages the tenant of the request: `managers` of tenants(), owners and admins of organizations. */
export const managesTenant = ofCaller(
  new Permission<User>({
    name: 'managesTenant',
    kind: 'has_role',
    requires: [],
    async evaluate(context) {
      if (context.user === null) return false;
      const held = (await context.membership)?.roles ?? [];
      if (context.isTenantOpen === true) return 'unknown';
      return (context.tenantManagers ?? MANAGERS).some((role) => held.includes(role));
    },
    async denial(context) {
      return context.user !== null && (await context.tenant) === null ? tenantRequired(context) : defaultDenial(context);
    },
  }),
);
