import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { FastifyReply } from 'fastify';
import { BoundedMap } from '../../db/values/bounded-map.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { Controller } from '../../http/compile/controller.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { raw } from '../../http/declare/raw.ts';
import { route } from '../../http/declare/route.ts';
import { allowAny } from '../../permissions/built-ins.ts';
import { Permission } from '../../permissions/permission.ts';
import type { OpenApiDocument } from '../document.ts';
import { withExamples } from '../examples.ts';
import { type OptionRules, readOptions } from '../../options/read-options.ts';
import { aFunction, anything, instanceOf, listOf, recordOf, required, rule, text } from '../../options/value-rule.ts';

export interface ReferenceOptions {
  /** Where the page is; the document is beside it. `/docs` and `/openapi.json` unless said. */
  readonly path?: `/${string}`;
  /** Who may read it. */
  readonly permission: Permission;
  /** The document's text; asked once, when it is first needed, and once for the form with examples. */
  readonly document: () => string;
  /** A document for each kind of caller, in place of `document`. The same key, the same text. */
  readonly documentFor?: (context: HandlerContext) => Promise<{ readonly key: string; readonly text: () => string }>;
  /** The authenticators that requests for the document may use. Default: those of the application. */
  readonly auth?: readonly string[];
  /** Facts of its routes. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** What the document cannot say, for samples and requests of the page; asked once. */
  readonly facts?: () => ReferenceFacts;
  /** What stands at `/`, where the application has no operation of its own there. Not given: nothing. */
  readonly index?: () => ApiIndex;
}

export interface ReferenceFacts {
  /** The method of a generated client by operation id: `['orders', 'list']`. */
  readonly clients: Readonly<Record<string, readonly [group: string, method: string]>>;
  /** The path that returns the CSRF token of the caller's session. */
  readonly session: string | null;
  /** Where the page leads back to, relative to it. */
  readonly home?: {
    /** The address of the link. */
    readonly href: string;
    /** The text of the link. */
    readonly title: string;
  };
  /** Files beside the document, relative to it: generated clients. */
  readonly downloads?: readonly {
    /** Where the file is, relative to the page. */
    readonly href: string;
    /** The text of the link. */
    readonly title: string;
  }[];
}

/** Where to go from the address of the application itself. */
export interface ApiIndex {
  /** The name of the API. */
  readonly title: string;
  /** The version of the API. */
  readonly version: string;
  /** Paths by name, such as `{ docs: '/docs', admin: '/admin/' }`. */
  readonly links: Readonly<Record<string, string>>;
}

const rules: OptionRules<ReferenceOptions> = {
  path: rule('a path such as "/docs"', (value) => typeof value === 'string' && value.startsWith('/')),
  permission: required(instanceOf(Permission, 'a permission, such as isStaff')),
  document: required(aFunction),
  documentFor: aFunction,
  auth: listOf(text),
  metadata: recordOf(anything),
  facts: aFunction,
  index: aFunction,
};

/** Nothing may run but the page's own script, and nothing may be loaded from anywhere else: the page works offline. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const asset = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');

/** Kinds of callers, each with and without examples: a document has about 150 kB, and takes some milliseconds to make. */
const DOCUMENTS_MAX = 32;

/** The page's parts by name. They are read when the application is created, so a request never touches the disk. */
const ASSETS = [
  'reference.css',
  'reference.js',
  'api-document.js',
  'credentials.js',
  'dom.js',
  'example.js',
  'operation-view.js',
  'samples.js',
  'schema-view.js',
  'try-it.js',
];

const AssetName = jsonSchema<{ readonly asset: string }>({
  type: 'object',
  properties: { asset: { type: 'string' } },
  required: ['asset'],
  additionalProperties: false,
});

/** `/openapi.json?examples=true` */
const Examples = jsonSchema<{ readonly examples?: 'true' | 'false' }>({
  type: 'object',
  properties: { examples: { enum: ['true', 'false'] } },
});

function safe(reply: FastifyReply): void {
  reply.headers({
    'content-security-policy': POLICY,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  });
}

interface ServedDocument {
  readonly text: string;
  readonly gzip: Uint8Array;
  readonly etag: string;
}

/** Made once: the routes of an application do not change. */
function servedDocument(text: string): ServedDocument {
  const etag = `W/"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`;
  return { text, gzip: gzipSync(text), etag };
}

/** The reference page, its scripts and stylesheet, and the document they draw; left out of the document itself. */
export function referenceController(options: ReferenceOptions): Controller {
  readOptions('referenceController()', options, rules);
  const path = options.path ?? '/docs';
  const folder = path.slice(path.lastIndexOf('/') + 1);
  const parent = path.slice(0, path.lastIndexOf('/'));
  const { auth, metadata = {}, documentFor: ofCaller } = options;
  const facts = { permission: options.permission, hidden: true, metadata, ...(auth === undefined ? {} : { auth }) } as const;
  // Where each caller has a document of their own, the page itself has nothing to hide: without a session it says what to do.
  const open = ofCaller === undefined ? facts : ({ permission: allowAny, auth: [], hidden: true, metadata } as const);
  // The page names its parts relative to itself, so it also works behind a prefix.
  const page = asset('reference.html').replaceAll('docs/reference.', `${folder}/reference.`);
  const assets = new Map(ASSETS.map((name) => [name, asset(name)]));
  const { index } = options;
  const factsText = (reply: FastifyReply): string => {
    safe(reply);
    reply.header('content-type', 'application/json; charset=utf-8');
    return JSON.stringify(options.facts?.() ?? { clients: {}, session: null });
  };
  // Without examples and with them.
  const served = new BoundedMap<string, ServedDocument>(DOCUMENTS_MAX);
  const documentFor = async (hasExamples: boolean, context: HandlerContext): Promise<ServedDocument> => {
    const { key, text } = ofCaller === undefined ? { key: '', text: options.document } : await ofCaller(context);
    return served.getOrMake(`${hasExamples} ${key}`, () =>
      servedDocument(hasExamples ? JSON.stringify(withExamples(JSON.parse(text()) as OpenApiDocument)) : text()),
    );
  };

  // The name is part of the operation ids: an application may have a ReferenceController of its own.
  class KitReferenceController extends Controller {
    page = route.get(path, { ...open, response: raw('text/html; charset=utf-8') }, ({ reply }) => {
      safe(reply);
      return page;
    });

    asset = route.get(
      `${path}/:asset`,
      { ...open, params: AssetName, response: raw('text/javascript; charset=utf-8') },
      ({ params, reply }) => {
        if (params.asset === 'facts.json') return factsText(reply);
        const content = assets.get(params.asset);
        if (content === undefined) throw coreErrors.not_found();
        safe(reply);
        if (params.asset.endsWith('.css')) reply.header('content-type', 'text/css; charset=utf-8');
        return content;
      },
    );

    document = route.get(
      `${parent}/openapi.json`,
      { ...facts, query: Examples, responses: { 304: {} }, response: raw('application/json; charset=utf-8') },
      async (context) => {
        const { query, request, reply } = context;
        safe(reply);
        const { text, gzip, etag } = await documentFor(query.examples === 'true', context);
        reply.headers({ etag, vary: 'accept-encoding' });
        if (request.headers['if-none-match'] === etag) {
          void reply.code(304);
          return '';
        }
        if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return text;
        reply.header('content-encoding', 'gzip');
        return gzip;
      },
    );
  }

  if (index === undefined) return new KitReferenceController();
  const contentOf: () => ApiIndex = index;

  class KitIndexController extends KitReferenceController {
    // `yields`: an operation of the application at the same address takes its place.
    index = route.get(
      '/',
      { ...facts, metadata: { yields: true }, response: raw('application/json; charset=utf-8') },
      ({ request, reply }) => {
        safe(reply);
        reply.header('vary', 'accept');
        const content = contentOf();
        if (!(request.headers.accept ?? '').includes('text/html')) return `${JSON.stringify(content, null, 2)}\n`;
        reply.header('content-type', 'text/html; charset=utf-8');
        return indexPage(content, folder);
      },
    );
  }
  return new KitIndexController();
}

const LINK_TEXTS: Readonly<Record<string, string>> = { docs: 'API reference', openapi: 'OpenAPI document', admin: 'Admin site' };

function indexPage({ title, version, links }: ApiIndex, folder: string): string {
  const items = Object.entries(links).map(
    ([name, path]) => `<li><a href="${escaped(path)}">${escaped(LINK_TEXTS[name] ?? name)}</a> <code>${escaped(path)}</code></li>`,
  );
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>${escaped(title)}</title>
    <link rel="stylesheet" href="${folder}/reference.css" />
  </head>
  <body>
    <main class="index">
      <h1>${escaped(title)}</h1>
      <p>Version ${escaped(version)}. This is an API: programs call it, and people read its reference.</p>
      <ul>${items.join('')}</ul>
    </main>
  </body>
</html>
`;
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
