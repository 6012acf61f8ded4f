import type { App } from '../../app/declare/module.ts';
import { requiredModule } from '../../app/declare/required-module.ts';
import { exportAnswer, exportAnswerSchema } from '../../crud/subjects/export-answer.ts';
import { sendArchive } from '../../crud/subjects/send-archive.ts';
import { CrudController } from '../../crud/serve/controller.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { BESIDE_TENANTS } from '../../http/compile/tenant-header.ts';
import { controllerOptions, routeMetadata } from '../../http/declare/controller-options.ts';
import { raw } from '../../http/declare/raw.ts';
import { route, type Route } from '../../http/declare/route.ts';
import type { Fault } from '../../options/fault.ts';
import { hasRecentLogin, hasScopes, isAuthenticated } from '../../permissions/built-ins.ts';
import { byLogin } from '../../permissions/by-login.ts';
import { all, any, not, Permission } from '../../permissions/permission.ts';
import { clientThrottle } from '../../throttle/throttles.ts';
import { tenantsIn } from './declare/tenants.ts';
import { tenantErrors } from './errors.ts';
import { acceptInvitation } from './manage/accept-invitation.ts';
import { readTenantExport, requestTenantExport, tenantArchive } from './manage/exports.ts';
import { removeMember } from './manage/members.ts';
import { AcceptBody, JoinedTenant } from './schemas.ts';
import { createErrors, invitationResource, memberErrors, memberResource, tenantResource, updateErrors } from './serve/resources.ts';

const permission = hasScopes({ allowUnscoped: true });
/** The base admits whoever accepts an invitation; everything else is for users. */
const own = { permission } as const;
const { recent_login_required } = coreErrors;

/** For everything at once: a session that was left open must not take it along, and no key can. */
const byPresentPerson = { permission: all(isAuthenticated, byLogin, permission, hasRecentLogin) } as const;
const exportErrors = [
  tenantErrors.tenant_not_found,
  tenantErrors.manager_required,
  coreErrors.tenant_suspended,
  recent_login_required,
] as const;
const ExportState = exportAnswerSchema('TenantExport');

/** `create` of tenants(). */
const mayCreate = new Permission({
  name: 'tenants.create',
  evaluate: (context) => tenantsIn(context.db).settings.create.evaluate(context),
  denial: (context) => tenantsIn(context.db).settings.create.denial(context, undefined),
});

/** A key that is bound to a tenant, or to none, works in it: it neither makes nor joins another, and does not end or give away its own. */
const notBound = new Permission({
  name: 'tenants.notBound',
  evaluate: ({ principal }) => (principal?.boundTenant ?? null) === null,
  denial: () =>
    coreErrors.permission_denied({
      detail: 'The key is bound: it neither creates, joins, deletes nor transfers a tenant. Log in, or use a key for every tenant.',
    }),
});

const OwnTenants = CrudController(tenantResource, {
  permission: any(not(isAuthenticated), permission),
  scope: 'tenants',
  page: { default: 50, max: 100 },
  operations: {
    list: { ...own, field: 'mine', summary: 'List the tenants that you are a member of' },
    create: { permission: all(permission, notBound, mayCreate), raises: createErrors, summary: 'Create a tenant and become its owner' },
    retrieve: { ...own, field: 'read', summary: 'Read one of your tenants' },
    update: false,
    partialUpdate: { ...own, field: 'rename', raises: updateErrors, summary: 'Change the name or the slug of a tenant' },
    destroy: {
      permission: all(permission, notBound, hasRecentLogin),
      raises: [tenantErrors.manager_required, recent_login_required],
      summary: 'Delete a tenant after its grace period',
      description: 'Nobody can act in the tenant from the next request on. Owners can restore it until `deletes_at`.',
    },
    undelete: own,
    transfer: { permission: all(permission, notBound) },
  },
});

/** Of what is below a tenant: the caller does not see it, or it is not there. */
const noTenant = [tenantErrors.tenant_not_found] as const;

class Members extends CrudController(memberResource, {
  permission,
  scope: 'tenants',
  parent: { relation: 'tenant' },
  expand: ['user'],
  page: { default: 50, max: 100 },
  operations: {
    list: { raises: noTenant, summary: 'List the members of a tenant' },
    retrieve: false,
    create: false,
    update: false,
    partialUpdate: { raises: [...memberErrors, ...noTenant], summary: 'Change the roles of a member' },
    destroy: { raises: [...memberErrors, ...noTenant], summary: 'Remove a member from a tenant' },
  },
}) {}

class Invitations extends CrudController(invitationResource, {
  permission,
  scope: 'tenants',
  parent: { relation: 'tenant' },
  expand: ['sender'],
  page: { default: 50, max: 100 },
  operations: {
    list: { raises: noTenant, summary: 'List the invitations of a tenant' },
    retrieve: false,
    create: {
      raises: [tenantErrors.manager_required, tenantErrors.already_invited, tenantErrors.seats_taken, ...noTenant],
      summary: 'Invite a person to a tenant',
    },
    update: false,
    partialUpdate: false,
    destroy: { raises: [tenantErrors.manager_required, ...noTenant], summary: 'Revoke an invitation' },
    resend: { raises: noTenant },
  },
}) {}

/** What one client can try: a token has 256 random bits, and new accounts hash a password. */
const acceptThrottle = clientThrottle('30/min', { name: 'tenant_invitations' });

/** Users manage their tenants, the members and the invitations of these. Mounted where the app likes: `'/tenants': TenantController`. */
export class TenantController extends OwnTenants {
  static override readonly tags: readonly string[] = ['tenants'];
  static readonly [controllerOptions] = {};
  static readonly [routeMetadata] = BESIDE_TENANTS;

  choose = route.post(
    '/:id/choose',
    {
      permission: all(isAuthenticated, permission),
      scope: 'tenants:write',
      params: this.keyParams,
      raises: [tenantErrors.tenant_not_found, tenantErrors.session_required],
      summary: 'Work in a tenant: requests of the session that name none are for this one',
    },
    async (context) => {
      const { id } = await this.find(context, context.params.id);
      const { db, principal } = context;
      const { sessionTenants } = tenantsIn(db).registry;
      if ((await sessionTenants?.choose(db, principal, id)) !== true) throw tenantErrors.session_required();
    },
  );

  leave = route.post(
    '/:id/leave',
    {
      permission: all(isAuthenticated, permission),
      scope: 'tenants:write',
      params: this.keyParams,
      raises: [tenantErrors.tenant_not_found, tenantErrors.last_owner],
      summary: 'Leave a tenant',
    },
    async (context) => {
      const { id } = await this.find(context, context.params.id);
      const { db, user, principal, requestId } = context;
      await removeMember(db, { tenant: id, user: user.id, by: principal, requestId });
    },
  );

  acceptInvitation = route.post(
    '/invitations/accept',
    {
      permission: any(not(isAuthenticated), all(permission, notBound)),
      scope: 'tenants:write',
      metadata: { openWrite: 'proves itself by the token of the invitation' },
      throttles: [acceptThrottle],
      body: AcceptBody,
      response: JoinedTenant,
      raises: [
        tenantErrors.invalid_invitation,
        tenantErrors.invitation_for_another_address,
        tenantErrors.registration_required,
        tenantErrors.registration_closed,
        tenantErrors.already_a_member,
        tenantErrors.seats_taken,
      ],
      summary: 'Accept an invitation',
      description:
        'As the user with the address that was invited. Without an account, send `username` and `password`: the account gets that address. Log in with it afterwards.',
    },
    async ({ db, body, principal, requestId }) => {
      const { tenant, member } = await acceptInvitation(db, { ...body, principal, requestId });
      return { tenant: { id: tenant.id, slug: tenant.slug, name: tenant.name }, user_id: member.user_id, roles: member.roles };
    },
  );

  requestExport = route.post(
    '/:id/export',
    {
      ...byPresentPerson,
      status: 202,
      scope: 'tenants:write',
      params: this.keyParams,
      response: ExportState,
      raises: [...exportErrors, tenantErrors.exports_unavailable],
      summary: 'Ask for an export of a tenant',
      description:
        'For its owners. It is written in the background. While one is under way it stays; a new one takes the place of an older.',
    },
    async (context) => {
      const { id } = await this.find(context, context.params.id);
      return exportAnswer(await requestTenantExport(context.db, id, context.principal));
    },
  );

  readExport = route.get(
    '/:id/export',
    {
      ...byPresentPerson,
      scope: 'tenants:read',
      params: this.keyParams,
      response: ExportState,
      raises: [...exportErrors, tenantErrors.export_not_found],
      summary: 'Get the state of the export of a tenant',
    },
    async (context) => {
      const { id } = await this.find(context, context.params.id);
      return exportAnswer(await readTenantExport(context.db, id, context.principal));
    },
  );

  downloadExport = route.get(
    '/:id/export/archive',
    {
      ...byPresentPerson,
      scope: 'tenants:read',
      params: this.keyParams,
      response: raw('application/zip'),
      tool: false,
      raises: [...exportErrors, tenantErrors.export_not_found, tenantErrors.export_not_ready],
      summary: 'Download the export of a tenant',
      description: 'A ZIP archive: a file of JSON Lines for each table, the files, and a manifest with counts and checksums.',
    },
    async (context) => {
      const { id, slug } = await this.find(context, context.params.id);
      const found = await readTenantExport(context.db, id, context.principal);
      if (found.state !== 'ready') throw tenantErrors.export_not_ready();
      return sendArchive(context, { name: slug, size: found.bytes, bytes: tenantArchive(context.db, id, found, context.principal) });
    },
  );

  readonly #members = this.below('/:tenant_id/members', new Members());
  members = this.#members['list'] as Route;
  changeMember = this.#members['partialUpdate'] as Route;
  removeMember = this.#members['destroy'] as Route;

  readonly #invitations = this.below('/:tenant_id/invitations', new Invitations());
  invitations = this.#invitations['list'] as Route;
  invite = this.#invitations['create'] as Route;
  resendInvitation = this.#invitations['resend'] as Route;
  revokeInvitation = this.#invitations['destroy'] as Route;

  override faults(app: App): readonly Fault[] {
    return [...requiredModule(app, 'tenants', this.constructor.name, 'tenants()'), ...super.faults(app)];
  }
}
