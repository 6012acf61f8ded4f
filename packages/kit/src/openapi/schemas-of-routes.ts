import type { CompiledRoute, RouteSchema } from '../http/exchange/compiled-route.ts';
import type { Fault } from '../options/fault.ts';
import { closeObjects } from './close-objects.ts';
import { type NameClash, SchemaComponents } from './schema-components.ts';
import { bodyName, changeName, ownerOf, responseName } from './schema-names.ts';

/** The named schemas of the routes; `reserved` are names of other schemas of the document. */
export function schemasOf(routes: readonly CompiledRoute[], reserved: readonly string[]): SchemaComponents {
  const components = new SchemaComponents(reserved);
  for (const route of routes) {
    const { params, query, headers, cookies, body, rawBody, response, responses, live } = route;
    const owner = ownerOf(route);
    for (const schema of [params, query, headers, cookies]) components.learn(schema?.json, 'input', owner);
    if (rawBody === undefined) components.learn(body?.json, 'input', { ...owner, fallback: bodyName(route) });
    components.learn(response?.json, 'output', { ...owner, fallback: responseName(route) });
    components.learn(live?.json, 'output', { ...owner, fallback: changeName(route) });
    for (const [status, other] of Object.entries(responses))
      components.learn(other.response?.json, 'output', { ...owner, fallback: responseName(route, status) });
  }
  components.settle();
  return components;
}

/** Input schemas as the server enforces them. */
export function closed(route: CompiledRoute): CompiledRoute {
  const close = (schema: RouteSchema | undefined): RouteSchema | undefined =>
    schema === undefined ? undefined : { schema: schema.schema, json: closeObjects(schema.json) };
  return Object.assign({}, route, {
    params: close(route.params),
    query: close(route.query),
    headers: close(route.headers),
    cookies: close(route.cookies),
    body: close(route.body),
  });
}

const HINT = "Give one of them another name: .meta({ id: 'OrderSummary' }) in Zod, 'x-component' in a JSON Schema.";

export function clashText({ name, controller }: NameClash): string {
  return `${controller}Controller has two different schemas that are named "${name}". ${HINT}`;
}

/** Schemas of one controller that have one name and differ: neither the order of routes nor a number may decide which of them keeps it. */
export function schemaNameFaults(routes: readonly CompiledRoute[]): Fault[] {
  const shown = routes.filter(({ hidden }) => !hidden).map(closed);
  return schemasOf(shown, []).clashes.map(({ name, controller }) => ({
    id: 'E003',
    message: `${controller}Controller has two different schemas that are named "${name}".`,
    hint: HINT,
  }));
}
