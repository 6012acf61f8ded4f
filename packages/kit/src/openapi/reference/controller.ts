import { readFileSync } from 'node:fs';
import type { FastifyReply } from 'fastify';
import { Controller } from '../../http/controller.ts';
import { raw } from '../../http/raw.ts';
import { route, type Route } from '../../http/route.ts';
import type { Permission } from '../../permissions/permission.ts';

export interface ReferenceOptions {
  /** Where the page is; the document is beside it. `/docs` and `/openapi.json` unless said. */
  readonly path?: `/${string}`;
  /** Who may read it. */
  readonly permission: Permission;
  /** The document's text; asked once, when it is first needed. */
  readonly document: () => string;
}

/** Nothing may run but the page's own script, and nothing may be loaded from anywhere else: the page works offline. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const asset = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');

const SCRIPTS = ['reference', 'api-document', 'dom', 'example', 'operation-view', 'schema-view'];

function safe(reply: FastifyReply): void {
  reply.headers({
    'content-security-policy': POLICY,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  });
}

/** The reference page, its scripts and stylesheet, and the document they draw; left out of the document itself. */
export function referenceController(options: ReferenceOptions): Controller {
  const { permission } = options;
  const path = options.path ?? '/docs';
  const folder = path.slice(path.lastIndexOf('/') + 1);
  const parent = path.slice(0, path.lastIndexOf('/'));
  const serve = (address: string, mediaType: string, content: () => string): Route =>
    route.get(address, { response: raw(`${mediaType}; charset=utf-8`), permission, hidden: true }, ({ reply }) => {
      safe(reply);
      return content();
    });
  // The page names its parts relative to itself, so it also works behind a prefix.
  const page = asset('reference.html').replaceAll('docs/reference.', `${folder}/reference.`);
  const style = asset('reference.css');
  let text: string | undefined;

  // The name is part of the operation ids: an application may have a ReferenceController of its own.
  class KitReferenceController extends Controller {
    page = serve(path, 'text/html', () => page);
    style = serve(`${path}/reference.css`, 'text/css', () => style);
    document = serve(`${parent}/openapi.json`, 'application/json', () => (text ??= options.document()));
  }
  const scripts = SCRIPTS.map((name) => {
    const content = asset(`${name}.js`);
    return [name, serve(`${path}/${name}.js`, 'text/javascript', () => content)];
  });
  return Object.assign(new KitReferenceController(), Object.fromEntries(scripts) as Record<string, Route>);
}
