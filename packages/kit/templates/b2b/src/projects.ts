import { hasRole, hasScopes, type Module } from 'kit';
import { modelResource } from 'kit/admin';
import { CrudController, resource } from 'kit/crud';
import { model, t, timestamps, userStamps, versioned } from 'kit/db';
import initial from '../migrations/0001_initial.ts';

export const projects = model(
  'projects',
  {
    id: t.uuidv7().pk(),
    tenant_id: t.uuid().readOnly(),
    title: t.text(200),
    notes: t.text().dbDefault(''),
    status: t.enum(['open', 'done']).dbDefault('open'),
    ...timestamps(),
    ...userStamps(),
    ...versioned(),
  },
  { indexes: [{ columns: ['tenant_id', '-id'] }, { columns: ['tenant_id', 'status'] }, { columns: ['tenant_id', 'title'] }] },
);

/** Holds for people who manage the tenant that the request is about. */
export const isManager = hasRole('owner', 'admin');

/** Members see and change the projects of their tenant; managers finish and delete them. */
export const projectResource = resource(projects, {
  tenant: 'tenant_id',
  version: 'version',
  state: 'status',
  transitions: {
    finish: { from: ['open'], to: 'done', permission: isManager, summary: 'Mark the project as done' },
    reopen: { from: ['done'], to: 'open', summary: 'Open the project again' },
  },
  // project.created, project.updated, project.finish, …: sent to the webhook endpoints of the tenant.
  events: true,
  audit: true,
  admin: { rows: true, tenant: 'all' },
});

/** People come with a session, programs and agents with an API key that has the scope. */
const permission = hasScopes({ allowUnscoped: true });

export class ProjectController extends CrudController(projectResource, {
  permission,
  scope: 'projects', // projects:read, projects:write
  filters: { status: ['eq'] },
  search: ['title', 'notes'],
  ordering: { by: ['title'] },
  operations: {
    list: { tool: true },
    create: { tool: true },
    retrieve: { tool: true },
    destroy: { permission: permission.and(isManager) },
  },
}) {
  static override readonly tags = ['projects'];
}

export function projectModule(): Module {
  return {
    name: 'projects',
    models: [projects],
    migrations: [initial],
    admin: {
      resources: [
        modelResource(projectResource, {
          label: 'Projects',
          singular: 'Project',
          group: 'Customers',
          columns: ['title', 'status', 'tenant_id', 'created_at'],
        }),
      ],
    },
  };
}
