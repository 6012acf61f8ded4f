export { RequestController, UsageController } from './controller.ts';
export { requests } from './module.ts';
export type { RequestsOptions } from './options.ts';
export { requestResource, usageResource } from './resource.ts';
