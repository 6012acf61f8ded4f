export { TenantController } from './controller.ts';
export { inviteMember, type SentInvitation } from './manage/invitations.ts';
export { addMember, removeMember } from './manage/members.ts';
export { resumeTenant, suspendTenant, type Suspension } from './manage/suspend.ts';
export { createTenant } from './manage/tenants.ts';
export { tenants } from './module.ts';
export type { InvitationMail, TenantFacts, TenantsOptions } from './options.ts';
