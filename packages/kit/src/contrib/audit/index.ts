export { AuditController, TenantAuditController } from './controller.ts';
export { audit, type AuditOptions } from './module.ts';
