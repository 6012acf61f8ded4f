import type { PortalDeclaration } from '../../app/admin/portal-page.ts';

/** Members of several tenants choose the one that the pages are about. */
export const tenantsPortal: PortalDeclaration = { pages: [], tenants: { resource: 'tenant', title: 'name', choose: 'choose' } };
