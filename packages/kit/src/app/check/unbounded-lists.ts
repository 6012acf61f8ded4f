import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import type { Fault } from '../../options/fault.ts';

type Json = Readonly<Record<string, unknown>>;

/** Parameters that say how much of a list is wanted. */
const LIMITS = /^(limit|page_size|per_page|size|first|last|top|max|count)$/;

/** W012: reads that return a list of rows and have no limit. `boundedList` in the metadata of a route says that something else bounds it. */
export function unboundedLists(routes: readonly CompiledRoute[]): Fault[] {
  return routes
    .filter(
      ({ method, kind, hidden, metadata }) =>
        (method === 'GET' || method === 'QUERY') && kind === 'json' && !hidden && !('crud' in metadata) && !('boundedList' in metadata),
    )
    .filter(({ response }) => response !== undefined && hasUnboundedList(response.json))
    .filter(({ query, body }) => ![...propertyNames(query?.json), ...propertyNames(body?.json)].some((name) => LIMITS.test(name)))
    .map(({ controller, field, method, path }) => ({
      id: 'W012',
      message: `${controller}.${field} (${method} ${path}) returns a list without a limit.`,
      hint: 'Accept a `limit` parameter, set `maxItems` in the response schema, or offer the rows with CrudController().',
    }));
}

function hasUnboundedList(root: Json): boolean {
  const schema = followed(root, root);
  if (isUnbounded(schema)) return true;
  const items = (schema['properties'] as Readonly<Record<string, Json>> | undefined)?.['items'];
  return items !== undefined && isUnbounded(followed(items, root));
}

/** Lists of plain values, such as names of an enum, are short; rows are objects. */
function isUnbounded({ type, maxItems, items }: Json): boolean {
  if (type !== 'array' || maxItems !== undefined) return false;
  const { type: itemType, $ref, allOf } = (items ?? {}) as Json;
  return itemType === 'object' || $ref !== undefined || allOf !== undefined;
}

function followed(schema: Json, root: Json): Json {
  const reference = schema['$ref'];
  if (typeof reference !== 'string' || !reference.startsWith('#/$defs/')) return schema;
  return (root['$defs'] as Readonly<Record<string, Json>> | undefined)?.[reference.slice('#/$defs/'.length)] ?? schema;
}

function propertyNames(json: Json | undefined): string[] {
  return Object.keys((json?.['properties'] as object | undefined) ?? {});
}
