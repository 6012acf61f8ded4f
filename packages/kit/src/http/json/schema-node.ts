import type { JsonSchema } from '../declare/schema.ts';
import { isMembers } from '../../options/value-rule.ts';

/** Follows `$ref` into `$defs`. Schema libraries emit local references only. */
export function resolveReference(schema: JsonSchema, root: JsonSchema): JsonSchema {
  let current = schema;
  for (let hops = 0; typeof current['$ref'] === 'string' && hops < 100; hops += 1) {
    const reference = current['$ref'];
    if (reference === '#') current = root;
    else {
      let target: unknown = root;
      for (const part of reference.replace(/^#\//, '').split('/')) {
        target = (target as Record<string, unknown> | undefined)?.[decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')];
      }
      current = isNode(target) ? target : {};
    }
  }
  return current;
}

export function isNode(value: unknown): value is JsonSchema {
  return isMembers(value);
}

export function nodes(value: unknown): readonly JsonSchema[] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

export function propertiesOf(schema: JsonSchema): readonly (readonly [string, JsonSchema])[] {
  return isNode(schema['properties'])
    ? Object.entries(schema['properties']).map(([name, node]) => [name, isNode(node) ? node : {}] as const)
    : [];
}

/** `anyOf` and `oneOf` alternatives, references resolved; empty when the node is not a union. */
export function alternativesOf(schema: JsonSchema, root: JsonSchema): readonly JsonSchema[] {
  return [...nodes(schema['anyOf']), ...nodes(schema['oneOf'])].map((node) => resolveReference(node, root));
}

/** Objects written as `allOf` become one node: all properties, loose if any part is. */
export function flattened(schema: JsonSchema, root: JsonSchema): JsonSchema {
  const resolved = resolveReference(schema, root);
  const parts = nodes(resolved['allOf']);
  if (parts.length === 0) return resolved;
  const known = flattenedNodes.get(resolved);
  if (known !== undefined) return known;
  const merged: Record<string, unknown> = { ...resolved };
  delete merged['allOf'];
  const properties: Record<string, unknown> = Object.fromEntries(propertiesOf(resolved));
  for (const part of parts.map((each) => flattened(each, root))) {
    Object.assign(properties, Object.fromEntries(propertiesOf(part)));
    for (const name of ['type', 'additionalProperties', 'patternProperties', 'items', 'anyOf', 'oneOf']) merged[name] ??= part[name];
  }
  if (Object.keys(properties).length > 0) merged['properties'] = properties;
  flattenedNodes.set(resolved, merged);
  return merged;
}

/** One merged node per `allOf` node, so that compilers recognize a recursive schema by identity. */
const flattenedNodes = new WeakMap<JsonSchema, JsonSchema>();

/** Whether undeclared members are welcome: the author said so, or declared no members at all. */
export function isLoose(schema: JsonSchema): boolean {
  const extra = schema['additionalProperties'];
  if (extra === undefined) return schema['properties'] === undefined;
  return extra !== false;
}

export function isObjectNode(schema: JsonSchema): boolean {
  const type = schema['type'];
  return type === 'object' || (Array.isArray(type) && type.includes('object')) || schema['properties'] !== undefined;
}

export function isArrayNode(schema: JsonSchema): boolean {
  const type = schema['type'];
  return type === 'array' || (Array.isArray(type) && type.includes('array')) || schema['items'] !== undefined;
}

/** The member that tells the alternatives of a union apart: required in each, with fixed values no two share. */
export function discriminatorOf(
  alternatives: readonly JsonSchema[],
): { readonly name: string; readonly values: readonly (readonly unknown[])[] } | undefined {
  for (const [name] of alternatives[0] === undefined ? [] : propertiesOf(alternatives[0])) {
    const values = alternatives.map((each) => fixedValues(each, name));
    const flat = values.flat();
    if (values.every((each) => each.length > 0) && new Set(flat).size === flat.length) return { name, values };
  }
  return undefined;
}

function fixedValues(schema: JsonSchema, name: string): readonly unknown[] {
  const node = propertiesOf(schema).find(([each]) => each === name)?.[1];
  if (node === undefined || !(Array.isArray(schema['required']) && schema['required'].includes(name))) return [];
  if ('const' in node) return [node['const']];
  return Array.isArray(node['enum']) ? node['enum'] : [];
}
