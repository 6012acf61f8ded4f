export { TenantController } from './controller.ts';
export { inviteMember, type NewInvitation, type SentInvitation } from './manage/invitations.ts';
export { addMember, removeMember, type MemberToAdd, type MemberToRemove } from './manage/members.ts';
export { resumeTenant, suspendTenant, type Suspension } from './manage/suspend.ts';
export { createTenant, type NewTenant } from './manage/tenants.ts';
export { tenants } from './module.ts';
export type { InvitationMail, InvitationMailOptions, TenantFacts, TenantsOptions } from './options.ts';
