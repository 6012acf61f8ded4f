import { StartUpError } from '../../app/check/start-up-error.ts';
import { userTableCheck } from '../../app/check/user-table-check.ts';
import type { Module } from '../../app/declare/module.ts';
import { tenantsOf } from '../../app/tenants/tenant-directory.ts';
import { erasureFaults } from '../../crud/subjects/erasure-faults.ts';
import type { Database } from '../../db/engine/db.ts';
import { tenantsAdmin } from './admin.ts';
import { tenantCommand } from './commands.ts';
import { tenantsOfApp, tenantsState } from './declare/tenants.ts';
import { tenantErrors } from './errors.ts';
import { exportJob } from './manage/exports.ts';
import { purgeJob } from './manage/purge-job.ts';
import { sendInvitation } from './manage/send-invitation.ts';
import { userChanged } from './manage/user-changed.ts';
import { initial } from './migrations/0001_initial.ts';
import { suspension } from './migrations/0002_suspension.ts';
import { exports } from './migrations/0003_exports.ts';
import { tenantExportParts, tenantExports, tenantInvitations, tenantMembers, tenants as tenantModel } from './models.ts';
import { tenantsPortal } from './portal.ts';
import { readTenantsOptions, type TenantsOptions } from './options.ts';
import { tenantDirectory } from './serve/directory.ts';
import { tenantRoutes } from './serve/page-routes.ts';
import { invitationResource, memberResource, tenantResource } from './serve/resources.ts';

/**
 * Tenants, their members and invitations: the customers of a product with several people each. Requests name a tenant, roles are those of the member in
 * it, and `resource({ tenant })` shows its rows. Mount TenantController for self-service.
 *
 * @example
 * ```ts
 * createApp({
 *   modules: [accounts(), tenants({ create: isAuthenticated })],
 *   mount: { '/v1': { '/tenants': TenantController } },
 * });
 * ```
 */
export function tenants(options: TenantsOptions = {}): Module {
  const settings = readTenantsOptions(options);
  let database: Database | undefined;
  return {
    name: 'tenants',
    models: [tenantModel, tenantMembers, tenantInvitations, tenantExports, tenantExportParts],
    migrations: [initial, suspension, exports],
    resources: [tenantResource, memberResource, invitationResource],
    tenants: tenantsOf(tenantDirectory(settings)),
    errors: tenantErrors,
    commands: [tenantCommand],
    admin: tenantsAdmin(settings.roles),
    portal: tenantsPortal,
    // Mail is sent by a job, so that none is lost and none is sent for what was rolled back.
    ...(settings.mail === null ? {} : { requires: ['jobs'] }),
    jobs: [purgeJob, exportJob, ...(settings.mail === null ? [] : [sendInvitation])],
    checks: [userTableCheck, { name: 'tenant_erasure', run: (app) => erasureFaults(app, 'tenant') }],
    provides: () => ({ userChanges: [userChanged], tenantRoutes: tenantRoutes(settings) }),
    setup(app) {
      if (app.users === null)
        throw new StartUpError([
          {
            id: 'E011',
            message: 'tenants() needs to know the users of the app.',
            hint: 'Add accounts() to the modules, or give createApp a `users` directory.',
          },
        ]);
      tenantsState.bind(app.db, tenantsOfApp(app, app.users, settings));
      database = app.db;
    },
    stop() {
      if (database !== undefined) tenantsState.release(database);
    },
  };
}
