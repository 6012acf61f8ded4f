import type { SiteAccess } from '../admin/state/site-kind.ts';
import type { AdminContext } from '../app/admin/declaration.ts';
import { Exchange } from '../http/exchange/exchange.ts';
import type { Middleware } from '../http/exchange/middleware.ts';
import { safeMethods } from '../permissions/built-ins.ts';
import type { Permission } from '../permissions/permission.ts';
import { unlessRefused } from './call.ts';
import { portalErrors } from './errors.ts';
import { linkScopeOf } from './links/session.ts';
import { REFERENCE } from './reference.ts';

/** A link shows its pages, and changes what its user may change. Who works in a suspended tenant changes nothing there, and is shown where to choose another. */
async function accessOf(exchange: Exchange, canManage: Permission | null): Promise<SiteAccess> {
  return { shows: (page) => shows(exchange, page), manages: (await unlessRefused(() => manages(exchange, canManage))) === true };
}

export function accessIn({ exchange }: AdminContext, canManage: Permission | null): Promise<SiteAccess> {
  if (!(exchange instanceof Exchange)) throw new Error('A page of the portal needs the request that asks for it.');
  return accessOf(exchange, canManage);
}

/** Whether the caller is shown a page: other pages neither name its records nor act on them. */
export function isShown({ exchange }: AdminContext, page: string): boolean {
  return exchange instanceof Exchange && shows(exchange, page);
}

function shows({ principal }: Exchange, page: string): boolean {
  const pages = principal === null ? undefined : linkScopeOf(principal)?.pages;
  return pages === undefined || pages.length === 0 || pages.includes(page);
}

async function manages(exchange: Exchange, canManage: Permission | null): Promise<boolean> {
  const { principal } = exchange;
  if (principal !== null && (principal.isViewing === true || linkScopeOf(principal)?.manage === false)) return false;
  return canManage === null || (await canManage.evaluate(exchange)) === true;
}

/** The one place where pages and changes are refused, whichever route of the portal is asked: pages of later releases included. */
export function guardPages(prefix: string, canManage: Permission | null): Middleware {
  const reference = `${prefix}/${REFERENCE}`;
  const document = `${prefix}/openapi.json`;
  return {
    name: 'portal_pages',
    appliesTo: ({ metadata, path }) =>
      metadata['portal'] === true && (/\/:(resource|page)\b/.test(path) || path.startsWith(reference) || path === document),
    async onAdmitted(exchange) {
      const { resource, page = REFERENCE } = exchange.request.params as { readonly resource?: string; readonly page?: string };
      if (!shows(exchange, resource ?? page)) throw portalErrors.portal_page_not_shown();
      if (resource !== undefined && !safeMethods.has(exchange.method) && !(await manages(exchange, canManage)))
        throw portalErrors.portal_read_only();
    },
  };
}

/** Which tenant a page is about, as it says itself. */
const PAGE_TENANT = 'x-portal-tenant';

/** A session has one tenant, and several tabs: none of them shows or changes another than it names. */
export function guardTenant(prefix: string): Middleware {
  const overview = `${prefix}/api/overview`;
  return {
    name: 'portal_tenant',
    appliesTo: ({ metadata, path }) => metadata['portal'] === true && (/\/:(resource|page)\b/.test(path) || path === overview),
    async onAdmitted(exchange) {
      const named = exchange.headers[PAGE_TENANT];
      if (named !== undefined && named !== ((await exchange.tenant) ?? '')) throw portalErrors.portal_tenant_changed();
    },
  };
}
