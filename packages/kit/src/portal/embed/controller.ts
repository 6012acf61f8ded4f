import { readFileSync } from 'node:fs';
import { page } from '../../admin/serve/site-controller.ts';
import type { AdminSite } from '../../admin/state/admin-site.ts';
import { namedFor } from '../../admin/state/site-kind.ts';
import { Controller } from '../../http/compile/controller.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { raw } from '../../http/declare/raw.ts';
import { route } from '../../http/declare/route.ts';
import { allowAny } from '../../permissions/built-ins.ts';

const AnyQuery = jsonSchema<object>({ type: 'object', additionalProperties: true });
const ELEMENT = new URL('kit-portal.js', import.meta.url);

const facts = { permission: allowAny, auth: [], hidden: true, query: AnyQuery } as const;

/**
 * The page for frames. Only pages of the origins may frame it. It has an address of its own, because it never uses a cookie: no page around it can make a
 * person click in a session that the browser sends by itself.
 */
export function frameController(site: AdminSite, origins: readonly string[]): Controller {
  class KitSiteFrameController extends Controller {
    frame = route.get('/', { ...facts, metadata: { portal: true, framed: true }, response: raw('text/html; charset=utf-8') }, (context) =>
      page(context, site, origins),
    );
  }
  return new (namedFor(site.kind, KitSiteFrameController))();
}

/** The element `<kit-portal>`, for the pages of the origins. */
export function elementController(site: AdminSite): Controller {
  const element = readFileSync(ELEMENT, 'utf8');

  class KitSiteElementController extends Controller {
    element = route.get('/', { ...facts, metadata: { portal: true }, response: raw('text/javascript') }, ({ reply }) => {
      reply.header('content-type', 'text/javascript; charset=utf-8');
      reply.header('cache-control', 'public, max-age=3600');
      // Pages of other origins load it.
      reply.header('cross-origin-resource-policy', 'cross-origin');
      return element;
    });
  }
  return new (namedFor(site.kind, KitSiteElementController))();
}
