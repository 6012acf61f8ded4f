export type { BetterAuthInstance } from './instance.ts';
export { joinedKysely } from './joined-kysely.ts';
export { kitPlugin } from './kit-plugin.ts';
export { betterAuth } from './module.ts';
export type { BetterAuthOptions } from './options.ts';
export { resumeTenant, suspendTenant, type Suspension } from './organizations.ts';
