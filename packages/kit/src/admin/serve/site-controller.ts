import { randomBytes } from 'node:crypto';
import { coreErrors } from '../../errors/core-errors.ts';
import { Controller } from '../../http/compile/controller.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { raw } from '../../http/declare/raw.ts';
import { route } from '../../http/declare/route.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import { allowAny } from '../../permissions/built-ins.ts';
import type { AdminSite } from '../state/admin-site.ts';
import type { SiteFile } from '../state/site-files.ts';
import { namedFor } from '../state/site-kind.ts';
import { ADMIN_STYLE_NONCE } from '../wire/wire.ts';

const YEAR_SECONDS = 31_536_000;
/** Links are passed through programs that add parameters of their own. */
const AnyQuery = jsonSchema<object>({ type: 'object', additionalProperties: true });

/** Scripts and styles are the build's own files; the nonce is for the style elements the component library makes. `files`: see AdminUploads. */
function policy(nonce: string, files: string | null, framedBy: readonly string[]): string {
  const connect = files === null ? "'self'" : `'self' ${files}`;
  const own = `script-src 'self'; connect-src ${connect}; img-src 'self' data:; font-src 'self'; manifest-src 'self'`;
  return `default-src 'none'; ${own}; style-src 'self' 'nonce-${nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors ${framedBy.join(' ') || "'none'"}`;
}

type Context = Pick<HandlerContext, 'request' | 'reply'>;

/** The page and its files. They hold no data, so anyone may load them: without a session they show the login form. */
export function siteController(site: AdminSite): Controller {
  const facts = { permission: allowAny, auth: [], hidden: true, query: AnyQuery, metadata: { [site.kind.name]: true } } as const;

  // The name is part of the operation ids: an application may have an AdminController of its own.
  class KitSiteSiteController extends Controller {
    page = route.get(
      '/',
      { ...facts, metadata: { ...facts.metadata, site: site.kind.name }, response: raw('text/html; charset=utf-8') },
      (context) => {
        const { url } = context.request;
        const [path = ''] = url.split('?', 1);
        if (path.endsWith('/')) return page(context, site);
        // Relative, so that it is right behind a proxy that adds or removes a prefix.
        void context.reply.code(308).header('location', `./${path.slice(path.lastIndexOf('/') + 1)}/${url.slice(path.length)}`);
        return '';
      },
    );

    file = route.get('/*', { ...facts, response: raw('application/octet-stream') }, (context) => {
      const name = (context.request.params as { readonly '*': string })['*'];
      if (name === '') return page(context, site);
      const file = name === 'index.html' ? undefined : site.files.get(name);
      if (file === undefined) throw coreErrors.not_found();
      return send(context, file);
    });
  }
  return new (namedFor(site.kind, KitSiteSiteController))();
}

/** `framedBy`: origins of pages that may show it in a frame. */
export function page({ reply }: Pick<Context, 'reply'>, site: AdminSite, framedBy: readonly string[] = []): string {
  const nonce = randomBytes(16).toString('base64url');
  void reply.headers({
    'content-security-policy': policy(nonce, site.uploads?.origin() ?? null, framedBy),
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
  });
  return site.page.replaceAll(ADMIN_STYLE_NONCE, nonce);
}

function send({ request, reply }: Context, file: SiteFile): Buffer | string {
  void reply.headers({
    etag: file.etag,
    'cache-control': file.isNamedByContent ? `public, max-age=${YEAR_SECONDS}, immutable` : 'no-cache',
    'content-type': file.mediaType,
    vary: 'accept-encoding',
  });
  if (request.headers['if-none-match']?.includes(file.etag) === true) {
    void reply.code(304);
    return '';
  }
  const accepted = request.headers['accept-encoding'] ?? '';
  const encoding = (['br', 'gzip'] as const).find((each) => file.encoded[each] !== undefined && accepts(accepted, each));
  if (encoding === undefined) return file.content;
  void reply.header('content-encoding', encoding);
  return file.encoded[encoding] ?? file.content;
}

function accepts(accepted: string, encoding: string): boolean {
  const refused = new RegExp(`\\b${encoding}\\s*;\\s*q=0(?:\\.0*)?\\s*(?:,|$)`, 'i').test(accepted);
  return !refused && new RegExp(`\\b${encoding}\\b`, 'i').test(accepted);
}
