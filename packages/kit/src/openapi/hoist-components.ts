import { isMembers } from '../options/value-rule.ts';
import { COMPONENT_KEYWORD } from '../db/declare/model-schema.ts';
import type { JsonSchema } from '../http/declare/schema.ts';

/** Schemas that name their component, such as those of models, become `$defs` of the root with references in their places. */
export function hoistComponents(json: JsonSchema): JsonSchema {
  const known = hoisted.get(json);
  if (known !== undefined) return known;
  const { $defs, ...rest } = json;
  const own = isMembers($defs) ? $defs : {};
  const definitions: Record<string, unknown> = { ...own };
  for (const [name, schema] of Object.entries(own)) definitions[name] = hoist(schema, definitions);
  const root = hoist(rest, definitions) as JsonSchema;
  const result = Object.keys(definitions).length === 0 ? root : { ...root, $defs: definitions };
  hoisted.set(json, result);
  return result;
}

const hoisted = new WeakMap<JsonSchema, JsonSchema>();

function hoist(value: unknown, definitions: Record<string, unknown>): unknown {
  if (Array.isArray(value)) return value.map((item) => hoist(item, definitions));
  if (!isMembers(value)) return value;
  const { [COMPONENT_KEYWORD]: name, ...rest } = value;
  if (typeof name !== 'string') return hoistMembers(value, definitions);
  const reference = unusedName(name, hoistMembers(rest, definitions), definitions);
  return { $ref: `#/$defs/${reference}` };
}

function hoistMembers(schema: Readonly<Record<string, unknown>>, definitions: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(schema).map(([key, inner]) => [key, hoist(inner, definitions)]));
}

/** Two schemas of one name that differ get two names: `Order`, `Order_2`. */
function unusedName(name: string, schema: unknown, definitions: Record<string, unknown>): string {
  for (let count = 1; ; count += 1) {
    const candidate = count === 1 ? name : `${name}_${count}`;
    if (definitions[candidate] !== undefined && JSON.stringify(definitions[candidate]) !== JSON.stringify(schema)) continue;
    definitions[candidate] = schema;
    return candidate;
  }
}
