import { isMembers } from '../options/value-rule.ts';
import type { JsonSchema } from '../http/declare/schema.ts';

/**
 * Says in the document what the server does: undeclared fields are refused unless the author's schema is loose.
 * Parts of an `allOf` stay open, because each of them sees the fields of the others; their whole is closed instead.
 */
export function closeObjects(json: JsonSchema): JsonSchema {
  return close(json, false) as JsonSchema;
}

function close(value: unknown, isPart: boolean): unknown {
  if (Array.isArray(value)) return value.map((item) => close(item, isPart));
  if (!isMembers(value)) return value;
  const closed: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) {
    if (key === 'properties' || key === 'patternProperties' || key === '$defs') closed[key] = isMembers(inner) ? closeEach(inner) : inner;
    else if (key === 'allOf') closed[key] = close(inner, true);
    else if (['items', 'prefixItems', 'anyOf', 'oneOf', 'additionalProperties', 'not'].includes(key))
      closed[key] = close(inner, key === 'not' || (isPart && key !== 'items'));
    else closed[key] = inner;
  }
  if (isPart || 'additionalProperties' in value || 'unevaluatedProperties' in value) return closed;
  if ('allOf' in value) closed['unevaluatedProperties'] = false;
  else if ('properties' in value) closed['additionalProperties'] = false;
  return closed;
}

function closeEach(schemas: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, close(schema, false)]));
}
