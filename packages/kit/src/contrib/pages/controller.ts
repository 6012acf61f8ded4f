import { Controller } from '../../http/compile/controller.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { raw } from '../../http/declare/raw.ts';
import { route } from '../../http/declare/route.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { Middleware } from '../../http/exchange/middleware.ts';
import { allowAny } from '../../permissions/built-ins.ts';
import type { PageSite } from './site.ts';

/** Mails and logins add parameters of their own. */
const AnyQuery = jsonSchema<object>({ type: 'object', additionalProperties: true });
const FileParams = jsonSchema<{ readonly file: string }>({ type: 'object', properties: { file: { type: 'string', maxLength: 100 } } });

/** The pages, and the files that they load. They contain no data, so anyone may load them: the scripts call the routes of the app as the person at the browser. */
export function pagesController(site: PageSite): Controller {
  const facts = { permission: allowAny, auth: [], hidden: true, tool: false, query: AnyQuery, metadata: { pages: true } } as const;
  const asHtml = { ...facts, response: raw('text/html; charset=utf-8') } as const;

  // The name is part of the operation ids: an application may have a PagesController of its own.
  class KitPagesController extends Controller {
    profile = route.get('/', asHtml, (context) => {
      const { url } = context.request;
      const [path = ''] = url.split('?', 1);
      if (path.endsWith('/')) return page(context, site, '');
      // Relative, so that it is right behind a proxy that adds or removes a prefix.
      void context.reply.code(308).header('location', `./${path.slice(path.lastIndexOf('/') + 1)}/${url.slice(path.length)}`);
      return '';
    });

    signIn = route.get('/sign-in', asHtml, (context) => page(context, site, 'sign-in'));
    signUp = route.get('/sign-up', asHtml, (context) => page(context, site, 'sign-up'));
    forgot = route.get('/forgot', asHtml, (context) => page(context, site, 'forgot'));
    link = route.get('/link', asHtml, (context) => page(context, site, 'link'));
    tenants = route.get('/tenants', asHtml, (context) => page(context, site, 'tenants'));
    members = route.get('/members', asHtml, (context) => page(context, site, 'members'));

    file = route.get('/assets/:file', { ...facts, params: FileParams, response: raw('application/octet-stream') }, (context) => {
      const file = site.file(context.params.file);
      if (file === undefined) throw coreErrors.not_found();
      const { reply, request } = context;
      void reply.headers({ etag: file.etag, 'cache-control': 'no-cache', 'content-type': file.mediaType });
      if (request.headers['if-none-match']?.includes(file.etag) !== true) return file.content;
      void reply.code(304);
      return '';
    });
  }
  return new KitPagesController();
}

function page({ reply }: Pick<HandlerContext, 'reply'>, site: PageSite, name: string): string {
  const document = site.document(name);
  if (document === null) throw coreErrors.not_found();
  void reply.headers({ 'content-security-policy': POLICY, 'content-type': 'text/html; charset=utf-8' });
  return document;
}

/** Scripts and styles are files of ours, and requests go to this site. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** On every response of the pages, errors included. A handler's own are kept. */
const HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

export const pageHeaders: Middleware = {
  name: 'pages_headers',
  appliesTo: ({ metadata }) => metadata['pages'] === true,
  onResponse({ reply, route: matched }) {
    // Requests without a route do not belong to the pages.
    if (matched === null) return;
    for (const [name, value] of Object.entries(HEADERS)) if (!reply.hasHeader(name)) reply.header(name, value);
  },
};
