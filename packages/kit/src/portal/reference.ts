import type { AdminSectionsPage } from '../app/admin/declaration.ts';
import type { App } from '../app/declare/module.ts';
import type { LoginProvider } from '../app/declare/login-provider.ts';
import { BoundedMap } from '../db/values/bounded-map.ts';
import { Controller } from '../http/compile/controller.ts';
import type { HandlerContext } from '../http/declare/handler-context.ts';
import { jsonSchema } from '../http/declare/json-schema.ts';
import { raw } from '../http/declare/raw.ts';
import { route } from '../http/declare/route.ts';
import type { CompiledRoute, RouteSchema } from '../http/exchange/compiled-route.ts';
import type { Exchange } from '../http/exchange/exchange.ts';
import { asProgram, couldCall } from '../http/serve/could-call.ts';
import { exchangeOf } from '../http/serve/serve-route.ts';
import { clientNames } from '../openapi/clients/client-names.ts';
import { generateClient } from '../openapi/clients/generate-client.ts';
import { openApiDocument } from '../openapi/document.ts';
import { referenceController } from '../openapi/reference/controller.ts';
import { isAuthenticated } from '../permissions/built-ins.ts';
import type { JsonSchema } from '../http/declare/schema.ts';
import { sharedHeaders } from './call.ts';

/** The page's part of the portal's address. */
export const REFERENCE = 'reference';

/** In the menu. */
export const referencePage: AdminSectionsPage = {
  name: REFERENCE,
  label: 'API reference',
  group: 'API',
  icon: 'audit',
  href: REFERENCE,
  read: () => Promise.resolve([]),
};

/** The reference page of the portal: the operations that this person, or a key of theirs, could call, with the fields that they may send and see. */
export function portalReference(prefix: string, title: () => string, login: LoginProvider, app: () => App): Controller {
  const controller = referenceController({
    path: `${prefix}/${REFERENCE}` as `/${string}`,
    permission: isAuthenticated,
    auth: login.authenticators,
    metadata: { portal: true },
    document: () => documentOf(app(), app().routes),
    documentFor: async (context) => {
      const { key, routes } = await operationsFor(app(), context);
      return { key, text: () => documentOf(app(), routes()) };
    },
    facts: () => ({
      clients: clientNames(app().routes),
      session: `${prefix}/api/session`,
      home: { href: './', title: title() },
      downloads: FILES.map((file) => ({ href: `${REFERENCE}/clients/${file}`, title: CLIENTS[file].title })),
    }),
  });
  // An app has a reference page of its own, and the name is part of the operation ids.
  Object.defineProperty(controller.constructor, 'name', { value: 'KitPortalReferenceController' });
  return controller;
}

const CLIENTS = {
  'client.ts': { language: 'typescript', title: 'TypeScript' },
  'client.py': { language: 'python', title: 'Python' },
} as const;
const FILES = Object.keys(CLIENTS) as (keyof typeof CLIENTS)[];
const ClientFile = jsonSchema<{ readonly file: keyof typeof CLIENTS }>({
  type: 'object',
  properties: { file: { enum: FILES } },
  required: ['file'],
  additionalProperties: false,
});

/** Kinds of callers, in each language: a client takes some milliseconds to make. */
const CLIENTS_MAX = 16;

/** The generated clients of the operations of the reference page, as `kit client` writes them. */
export function portalClients(login: LoginProvider, app: () => App): Controller {
  const made = new BoundedMap<string, string>(CLIENTS_MAX);
  const facts = { permission: isAuthenticated, auth: login.authenticators, hidden: true, metadata: { portal: true } } as const;

  class KitPortalClientController extends Controller {
    client = route.get('/:file', { ...facts, params: ClientFile, response: raw('text/plain; charset=utf-8') }, async (context) => {
      const { file } = context.params;
      const { key, routes } = await operationsFor(app(), context);
      const { title, version } = app();
      const { language } = CLIENTS[file];
      context.reply.headers({ 'content-disposition': `attachment; filename="${file}"`, 'x-content-type-options': 'nosniff' });
      return made.getOrMake(`${language} ${key}`, () => generateClient(routes(), { language, title, version }));
    });
  }
  return new KitPortalClientController();
}

/** The operations that this caller, or a key of theirs, could call. The same key, the same operations. */
async function operationsFor(
  app: App,
  { request }: Pick<HandlerContext, 'request'>,
): Promise<{ readonly key: string; readonly routes: () => readonly CompiledRoute[] }> {
  const exchange = exchangeOf(request);
  const headers = sharedHeaders(exchange);
  const program = asProgram(exchange, app.routes);
  const asked = app.routes
    .filter(({ hidden }) => !hidden)
    .map(async (route) => {
      const could =
        (await couldCall(route, exchange, headers)) ?? (program === null ? null : await couldCall(route, exchange, headers, program));
      return could === null ? null : { route, schemas: await schemasOf(route, could) };
    });
  const known = (await Promise.all(asked)).filter((each) => each !== null);
  return {
    key: known.map(({ route, schemas }) => `${route.operationId} ${schemas?.key ?? ''}`).join('\n'),
    routes: () => known.map(({ route, schemas }) => withSchemas(route, schemas?.make())),
  };
}

const schemasOf = (route: CompiledRoute, exchange: Exchange) => route.route.schemasFor?.(exchange);

/** The operation with the schemas of one kind of caller. */
function withSchemas(
  route: CompiledRoute,
  made: { readonly query?: JsonSchema; readonly body?: JsonSchema; readonly response?: JsonSchema } = {},
): CompiledRoute {
  const narrowed = (own: RouteSchema | undefined, json: JsonSchema | undefined): RouteSchema | undefined =>
    own === undefined || json === undefined ? own : { ...own, json };
  const { query, body, response } = route;
  return Object.assign({}, route, {
    query: narrowed(query, made.query),
    body: narrowed(body, made.body),
    response: narrowed(response, made.response),
  });
}

function documentOf({ title, version, settings }: App, routes: readonly CompiledRoute[]): string {
  const { errorFormat, throttleRates, apiServers } = settings;
  const servers = apiServers.map((url) => ({ url }));
  return JSON.stringify(openApiDocument(routes, { spec: '3.1', title, version, errorFormat, throttleRates, servers }));
}
