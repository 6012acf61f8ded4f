import { mountOf, type TenantRoutes } from '../../../app/declare/account-routes.ts';
import { TenantController } from '../controller.ts';
import type { TenantSettings } from '../options.ts';

/** For pages: the routes of TenantController, where the app has mounted it. */
export function tenantRoutes({ roles, mail }: TenantSettings): TenantRoutes {
  return {
    kind: 'tenants',
    base: (app) => mountOf(app, (controller) => controller instanceof TenantController, 'acceptInvitation', '/invitations/accept'),
    roles: roles.all,
    managers: roles.managers,
    registration: mail !== null,
  };
}
