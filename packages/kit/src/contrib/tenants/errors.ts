import { defineErrors } from '../../errors/catalog.ts';

/** Errors of tenants, their members and invitations. */
export const tenantErrors = defineErrors('tenants', {
  tenant_not_found: {
    status: 404,
    detail: 'There is no such tenant.',
    remedy: 'Check the id. You get the same error for tenants that you are not a member of.',
  },
  member_not_found: {
    status: 404,
    detail: 'There is no such member.',
    remedy: 'Read the list of members again; the member may have left.',
  },
  invitation_not_found: {
    status: 404,
    detail: 'There is no such invitation.',
    remedy: 'Read the list of invitations again; it may have been accepted or revoked.',
  },
  invalid_invitation: {
    status: 410,
    detail: 'The invitation is not valid: it was used, has expired, was revoked, or its sender can no longer invite.',
    remedy: 'Ask an administrator of the tenant to send it again.',
  },
  invitation_for_another_address: {
    status: 403,
    detail: 'The invitation was sent to another e-mail address.',
    remedy: 'Log in as the user with the address that the invitation was sent to, or ask for an invitation to your address.',
  },
  registration_required: {
    status: 401,
    detail: 'Log in to accept the invitation, or send `username` and `password` to create an account.',
    remedy: 'Send the request again with credentials. Accounts can be created where the application enables them.',
  },
  registration_closed: {
    status: 403,
    detail: 'New accounts cannot be created here.',
    remedy: "Log in as an existing user. Operators enable new accounts with accounts({ signUp: 'invitation' }).",
  },
  manager_required: {
    status: 403,
    detail: 'Your role in this tenant does not allow this.',
    remedy: 'Ask an administrator of the tenant.',
    members: { required_roles: { type: 'array', items: { type: 'string' }, description: 'Roles that can do this.' } },
  },
  session_required: {
    status: 409,
    detail: 'Only a session remembers a tenant.',
    remedy: 'Name the tenant in each request, or log in with a browser.',
  },
  last_owner: {
    status: 409,
    detail: 'A tenant has at least one active owner, and this is the last one.',
    remedy: 'Make another member an owner first, or delete the tenant.',
  },
  already_a_member: { status: 409, detail: 'The user is a member already.', remedy: 'Change the roles of the member instead.' },
  service_member: {
    status: 409,
    detail: "A service user is a member of one tenant, with one role that is not the owner's.",
    remedy: 'Choose another role, or create a service user in the other tenant.',
  },
  already_invited: { status: 409, detail: 'The address is invited already.', remedy: 'Send the invitation again, or revoke it first.' },
  slug_taken: { status: 409, detail: 'Another tenant has this slug.', remedy: 'Choose another slug.' },
  seats_taken: {
    status: 409,
    detail: 'The tenant has no free seat.',
    remedy: 'Remove a member or revoke an invitation, or get more seats; `seats_max` is their number.',
    members: { seats_max: { type: 'integer', description: 'The number of seats of the tenant.' } },
  },
  tenant_limit_reached: {
    status: 409,
    detail: 'You own as many tenants as allowed.',
    remedy: 'Delete a tenant or give it to another member; `limit` is how many a user can own.',
    members: { limit: { type: 'integer', description: 'The number of tenants that a user can own.' } },
  },
  export_not_found: {
    status: 404,
    detail: 'There is no export of the tenant, or it has expired.',
    remedy: 'Ask for one with POST export.',
  },
  export_not_ready: {
    status: 409,
    detail: 'The export of the tenant is not ready.',
    remedy: 'Read its state until it is `ready`. Ask for a new one where it is `failed`.',
  },
  exports_unavailable: {
    status: 409,
    detail: 'This application writes no exports of tenants.',
    remedy: 'Ask its operator, who exports with `kit tenant export`, or adds jobs() to the modules.',
  },
  invalid_tenant: { status: 422, detail: 'The tenant is not valid.', remedy: '`detail` describes what to correct.' },
});
