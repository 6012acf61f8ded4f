/** Modules of the toolkit that have tables, by name. */
export const toolkitModules: ReadonlySet<string> = new Set([
  'accounts',
  'apikeys',
  'audit',
  'better_auth',
  'grants',
  'jobs',
  'personal',
  'portal',
  'requests',
  'tenants',
  'uploads',
  'webhooks',
]);
