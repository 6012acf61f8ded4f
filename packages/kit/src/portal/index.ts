export { portal } from './module.ts';
export { portalLink, revokePortalLink } from './links/portal-link.ts';
export type { PortalOptions } from './options.ts';
export type { PortalDeclaration, PortalPage } from '../app/admin/portal-page.ts';
