import type { JsonSchema } from '../http/schema.ts';

interface ObjectSchema {
  readonly properties: Readonly<Record<string, unknown>>;
  readonly required: readonly string[];
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

/** With fewer members in common a reference says no more than the members. */
const SHARED_MIN = 6;

/** A schema that says nothing but its members. */
function plainObject(schema: JsonSchema): ObjectSchema | undefined {
  const { type, properties, required = [], description: _, additionalProperties: _open, ...rest } = schema;
  if (type !== 'object' || !isObject(properties) || Object.keys(rest).length > 0) return undefined;
  return { properties, required: required as readonly string[] };
}

/**
 * Schemas of responses that have all members of another one refer to it: an endpoint with its secret is `allOf` the endpoint and a secret. `open` are the names
 * that only responses use. They do not forbid further members: later versions may add some, and composed objects would contradict themselves.
 */
export function extendSchemas(schemas: Readonly<Record<string, JsonSchema>>, open: ReadonlySet<string>): Record<string, JsonSchema> {
  const opened = Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, open.has(name) ? withoutEnd(schema) : schema]));
  const objects = [...open].flatMap((name) => {
    const object = opened[name] === undefined ? undefined : plainObject(opened[name]);
    return object === undefined || Object.keys(object.properties).length < SHARED_MIN ? [] : [{ name, ...object }];
  });
  const widestFirst = objects.toSorted(
    (a, b) => Object.keys(b.properties).length - Object.keys(a.properties).length || (a.name < b.name ? -1 : 1),
  );
  for (const { name, properties, required } of objects) {
    // Only where the name says it too: `Ticket` is no kind of `PartialTicket`.
    const base = widestFirst.find(
      (other) => other.name !== name && name.includes(other.name) && extendsObject({ properties, required }, other),
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

function withoutEnd(schema: JsonSchema): JsonSchema {
  const { additionalProperties, ...rest } = schema;
  return additionalProperties === false && isObject(schema['properties']) && !('allOf' in schema) ? rest : schema;
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
