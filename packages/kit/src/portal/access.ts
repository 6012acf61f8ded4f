import type { SiteAccess } from '../admin/state/site-kind.ts';
import type { AdminContext } from '../app/admin/declaration.ts';
import { Exchange } from '../http/exchange/exchange.ts';
import type { CompiledRoute } from '../http/exchange/compiled-route.ts';
import type { Middleware } from '../http/exchange/middleware.ts';
import { probeRoute } from '../http/serve/call-route.ts';
import { safeMethods } from '../permissions/built-ins.ts';
import type { Permission } from '../permissions/permission.ts';
import { sharedHeaders, unlessRefused } from './call.ts';
import { portalErrors } from './errors.ts';
import { linkScopeOf } from './links/session.ts';
import { REFERENCE } from './reference.ts';

/** A link shows its pages, and changes what its user may change. Who works in a suspended tenant changes nothing there, and is shown where to choose another. */
async function accessOf(exchange: Exchange, canManage: Permission | null, pages: readonly ListedPage[]): Promise<SiteAccess> {
  const [closed, mayManage] = await Promise.all([closedPages(exchange, pages), unlessRefused(() => manages(exchange, canManage))]);
  return { shows: (page) => !closed.has(page) && shows(exchange, page), manages: mayManage === true };
}

export function accessIn(
  { exchange }: AdminContext,
  { canManage, pages }: { readonly canManage: Permission | null; readonly pages: readonly ListedPage[] },
): Promise<SiteAccess> {
  if (!(exchange instanceof Exchange)) throw new Error('A page of the portal needs the request that asks for it.');
  return accessOf(exchange, canManage, pages);
}

/** A page, and the operation that lists its records. */
export interface ListedPage {
  readonly page: { readonly name: string };
  readonly list: CompiledRoute;
}

/**
 * Pages that this caller's role does not open, such as the endpoints of a tenant to those who do not manage it: they are not offered. Where a tenant has
 * to be chosen first, or is suspended, they are: they say so.
 */
async function closedPages(exchange: Exchange, pages: readonly ListedPage[]): Promise<ReadonlySet<string>> {
  const headers = sharedHeaders(exchange);
  const closed = new Set<string>();
  await Promise.all(
    pages.map(async ({ page, list }) => {
      const probe = probeRoute(list, exchange, { headers });
      const isOpen = await unlessRefused(async () => list.permission.evaluate(probe));
      if (isOpen === false && (await list.permission.denial(probe, undefined)).code === 'permission_denied') closed.add(page.name);
    }),
  );
  return closed;
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
