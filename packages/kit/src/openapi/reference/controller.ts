import { readFileSync } from 'node:fs';
import type { FastifyReply } from 'fastify';
import { coreErrors } from '../../errors/core-errors.ts';
import { Controller } from '../../http/controller.ts';
import { jsonSchema } from '../../http/json-schema.ts';
import { raw } from '../../http/raw.ts';
import { route } from '../../http/route.ts';
import { Permission } from '../../permissions/permission.ts';
import { type OptionRules, readOptions } from '../../options/read-options.ts';
import { aFunction, instanceOf, required, rule } from '../../options/value-rule.ts';

export interface ReferenceOptions {
  /** Where the page is; the document is beside it. `/docs` and `/openapi.json` unless said. */
  readonly path?: `/${string}`;
  /** Who may read it. */
  readonly permission: Permission;
  /** The document's text; asked once, when it is first needed. */
  readonly document: () => string;
}

const rules: OptionRules<ReferenceOptions> = {
  path: rule('a path such as "/docs"', (value) => typeof value === 'string' && value.startsWith('/')),
  permission: required(instanceOf(Permission, 'a permission, such as isStaff')),
  document: required(aFunction),
};

/** Nothing may run but the page's own script, and nothing may be loaded from anywhere else: the page works offline. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const asset = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');

/** The page's parts by name. They are read when the application is created, so a request never touches the disk. */
const ASSETS = ['reference.css', 'reference.js', 'api-document.js', 'dom.js', 'example.js', 'operation-view.js', 'schema-view.js'];

const AssetName = jsonSchema<{ readonly asset: string }>({
  type: 'object',
  properties: { asset: { type: 'string' } },
  required: ['asset'],
  additionalProperties: false,
});

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
  readOptions('referenceController()', options, rules);
  const path = options.path ?? '/docs';
  const folder = path.slice(path.lastIndexOf('/') + 1);
  const parent = path.slice(0, path.lastIndexOf('/'));
  const facts = { permission: options.permission, hidden: true } as const;
  // The page names its parts relative to itself, so it also works behind a prefix.
  const page = asset('reference.html').replaceAll('docs/reference.', `${folder}/reference.`);
  const assets = new Map(ASSETS.map((name) => [name, asset(name)]));
  let text: string | undefined;

  // The name is part of the operation ids: an application may have a ReferenceController of its own.
  class KitReferenceController extends Controller {
    page = route.get(path, { ...facts, response: raw('text/html; charset=utf-8') }, ({ reply }) => {
      safe(reply);
      return page;
    });

    asset = route.get(
      `${path}/:asset`,
      { ...facts, params: AssetName, response: raw('text/javascript; charset=utf-8') },
      ({ params, reply }) => {
        const content = assets.get(params.asset);
        if (content === undefined) throw coreErrors.not_found();
        safe(reply);
        if (params.asset.endsWith('.css')) reply.header('content-type', 'text/css; charset=utf-8');
        return content;
      },
    );

    document = route.get(`${parent}/openapi.json`, { ...facts, response: raw('application/json; charset=utf-8') }, ({ reply }) => {
      safe(reply);
      text ??= options.document();
      return text;
    });
  }
  return new KitReferenceController();
}
