import { isMembers } from '../options/value-rule.ts';
import type { JsonSchema } from '../http/declare/schema.ts';

interface ObjectSchema {
  readonly properties: Readonly<Record<string, unknown>>;
  readonly required: readonly string[];
}

/** With less in common a reference says no more than the members. */
const SHARED_CHARACTERS_MIN = 120;

/** A schema that says nothing but its members. */
function plainObject(schema: JsonSchema): ObjectSchema | undefined {
  const { type, properties, required = [], description: _, additionalProperties: _open, ...rest } = schema;
  if (type !== 'object' || !isMembers(properties) || Object.keys(rest).length > 0) return undefined;
  return { properties, required: required as readonly string[] };
}

/**
 * Schemas of responses that have all members of another one refer to it: an endpoint with its secret is `allOf` the endpoint and a secret. `open` are the names
 * that only responses use. They do not forbid further members, nor do objects inside them: later versions may add some, and composed objects would
 * contradict themselves.
 */
export function extendSchemas(schemas: Readonly<Record<string, JsonSchema>>, open: ReadonlySet<string>): Record<string, JsonSchema> {
  const opened = Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, open.has(name) ? withoutEnd(schema) : schema]));
  const objects = [...open].flatMap((name) => {
    const object = opened[name] === undefined ? undefined : plainObject(opened[name]);
    return object === undefined ? [] : [{ name, ...object }];
  });
  const widestFirst = objects.toSorted(
    (a, b) => Object.keys(b.properties).length - Object.keys(a.properties).length || (a.name < b.name ? -1 : 1),
  );
  for (const { name, properties, required } of objects) {
    // Only where the name says it too: `Ticket` is no kind of `PartialTicket`.
    const base = widestFirst.find(
      (other) =>
        other.name !== name &&
        name.includes(other.name) &&
        JSON.stringify(other.properties).length >= SHARED_CHARACTERS_MIN &&
        extendsObject({ properties, required }, other),
    );
    if (base === undefined) continue;
    const own = Object.fromEntries(Object.entries(properties).filter(([member]) => !(member in base.properties)));
    const { description } = opened[name]!;
    const needed = required.filter((member) => member in own);
    opened[name] = {
      ...(description === undefined ? {} : { description }),
      allOf: [
        { $ref: `#/components/schemas/${base.name}` },
        { type: 'object', properties: own, ...(needed.length === 0 ? {} : { required: needed }) },
      ],
    };
  }
  return opened;
}

/** Also of objects inside. Alternatives stay: what they forbid may be how they differ. */
function withoutEnd(schema: JsonSchema): JsonSchema {
  const opened: Record<string, unknown> = { ...schema };
  for (const key of ['items', 'additionalProperties']) if (isMembers(schema[key])) opened[key] = withoutEnd(schema[key]);
  if (isMembers(schema['properties']))
    opened['properties'] = Object.fromEntries(
      Object.entries(schema['properties']).map(([name, inner]) => [name, isMembers(inner) ? withoutEnd(inner) : inner]),
    );
  if (schema['additionalProperties'] === false && isMembers(schema['properties']) && !('allOf' in schema))
    delete opened['additionalProperties'];
  return opened;
}

/** All members of the other one, with the same schemas, required or not as there, and at least one more. */
function extendsObject(object: ObjectSchema, other: ObjectSchema): boolean {
  const names = Object.keys(other.properties);
  return (
    names.length < Object.keys(object.properties).length &&
    names.every(
      (name) =>
        JSON.stringify(object.properties[name]) === JSON.stringify(other.properties[name]) &&
        object.required.includes(name) === other.required.includes(name),
    )
  );
}
