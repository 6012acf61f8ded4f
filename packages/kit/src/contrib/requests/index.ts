export { QuotaController, RequestController, UsageController } from './controller.ts';
export { requests } from './module.ts';
export type { QuotaOptions, RequestsOptions } from './options.ts';
export { quotaResource, requestResource, usageResource } from './resource.ts';
export { usage } from './quotas/usage.ts';
export { UsageRecorded, type RecordedUsage } from './quotas/usage-recorded.ts';
