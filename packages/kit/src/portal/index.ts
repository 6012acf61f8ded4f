export { portal } from './module.ts';
export type { PortalOptions } from './options.ts';
export type { PortalDeclaration, PortalPage } from '../app/admin/portal-page.ts';
