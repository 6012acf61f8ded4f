import type { Middleware } from '../../http/exchange/middleware.ts';
import type { SiteKind } from '../state/site-kind.ts';

/** On every answer of the site, errors included. A handler's own are kept. `x-frame-options` cannot name origins: a page for frames has its policy alone. */
const HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/** The headers of a site's routes. */
export function siteHeaders(site: SiteKind['name']): Middleware {
  return {
    name: `${site}_headers`,
    appliesTo: ({ metadata }) => metadata[site] === true,
    onResponse({ reply, route }) {
      // Requests without a route do not belong to the site.
      if (route === null) return;
      const framed = route.metadata['framed'] === true;
      for (const [name, value] of Object.entries(HEADERS))
        if (!reply.hasHeader(name) && !(framed && name === 'x-frame-options')) reply.header(name, value);
    },
  };
}
