import type { AdminSectionsPage } from '../app/admin/declaration.ts';
import type { App } from '../app/declare/module.ts';
import type { LoginProvider } from '../app/declare/login-provider.ts';
import type { Controller } from '../http/compile/controller.ts';
import type { HandlerContext } from '../http/declare/handler-context.ts';
import type { CompiledRoute, RouteSchema } from '../http/exchange/compiled-route.ts';
import type { Exchange } from '../http/exchange/exchange.ts';
import { asProgram, couldCall } from '../http/serve/could-call.ts';
import { exchangeOf } from '../http/serve/serve-route.ts';
import { clientNames } from '../openapi/clients/client-names.ts';
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
    documentFor: (context) => documentFor(app(), context),
    facts: () => ({
      clients: clientNames(app().routes),
      session: `${prefix}/api/session`,
      home: { href: './', title: title() },
    }),
  });
  // An app has a reference page of its own, and the name is part of the operation ids.
  Object.defineProperty(controller.constructor, 'name', { value: 'KitPortalReferenceController' });
  return controller;
}

async function documentFor(app: App, { request }: HandlerContext): Promise<{ readonly key: string; readonly text: () => string }> {
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
  const key = known.map(({ route, schemas }) => `${route.operationId} ${schemas?.key ?? ''}`).join('\n');
  return {
    key,
    text: () =>
      documentOf(
        app,
        known.map(({ route, schemas }) => withSchemas(route, schemas?.make())),
      ),
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
