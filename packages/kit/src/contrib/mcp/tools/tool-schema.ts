import type { JsonSchema } from '../../../http/declare/schema.ts';

/** Parts of a request that arguments of a tool belong to. */
export type Part = 'params' | 'query' | 'headers' | 'body';

/** An object schema with everything that its root refers to or is composed of in one place. */
export interface ObjectRoot {
  readonly properties: Readonly<Record<string, JsonSchema>>;
  readonly required: readonly string[];
  readonly rest: JsonSchema;
  readonly defs: Readonly<Record<string, JsonSchema>>;
}

const REFERENCE = /^#\/\$defs\/(.+)$/;

/**
 * The root as an object, with references and `allOf` resolved: official clients reject a whole list of tools for one root that is a `$ref`. Undefined
 * where it is not an object with known properties.
 */
export function objectRoot(json: JsonSchema): ObjectRoot | undefined {
  const { $defs = {}, ...root } = json as { readonly $defs?: Readonly<Record<string, JsonSchema>> };
  const found = resolved(root, $defs, 0);
  return found === undefined ? undefined : { ...found, defs: $defs };
}

function resolved(json: JsonSchema, defs: Readonly<Record<string, JsonSchema>>, depth: number): Omit<ObjectRoot, 'defs'> | undefined {
  if (depth > 20) return undefined;
  const { $ref, allOf, ...own } = json as { readonly $ref?: string; readonly allOf?: readonly JsonSchema[] };
  const parts: JsonSchema[] = [];
  if ($ref !== undefined) {
    const target = defs[REFERENCE.exec($ref)?.[1] ?? ''];
    if (target === undefined) return undefined;
    parts.push(target);
  }
  parts.push(...(allOf ?? []));
  const found = parts.map((part) => resolved(part, defs, depth + 1));
  if (found.includes(undefined)) return undefined;
  const {
    type,
    properties = {},
    required = [],
    ...rest
  } = own as {
    readonly type?: unknown;
    readonly properties?: Readonly<Record<string, JsonSchema>>;
    readonly required?: readonly string[];
  };
  if (type !== undefined ? type !== 'object' : found.length === 0) return undefined;
  return {
    properties: Object.assign({}, ...found.map((each) => each?.properties), properties) as ObjectRoot['properties'],
    required: [...new Set([...found.flatMap((each) => each?.required ?? []), ...required])],
    rest: Object.assign({}, ...found.map((each) => each?.rest), rest) as JsonSchema,
  };
}

/** Collects the `$defs` of several schemas in one list: two different ones of one name get two names. */
export class Definitions {
  readonly #defs = new Map<string, JsonSchema>();

  /** Adds the definitions of a schema; returns what to do with schemas that refer to them. */
  add(defs: Readonly<Record<string, JsonSchema>>, root?: JsonSchema): (schema: JsonSchema) => JsonSchema {
    const names = new Map<string, string>();
    const all = root === undefined || !refersToRoot([root, defs]) ? defs : { ...defs, Root: root };
    for (const name of Object.keys(all)) {
      let free = name;
      for (let count = 2; this.#defs.has(free) && !isSame(this.#defs.get(free), all[name]); count += 1) free = `${name}${count}`;
      names.set(name, free);
      // Reserved, so that two names of one schema do not become one.
      if (!this.#defs.has(free)) this.#defs.set(free, all[name] as JsonSchema);
    }
    const rename = (schema: JsonSchema): JsonSchema => renamed(schema, names) as JsonSchema;
    const isRenamed = [...names].some(([name, free]) => name !== free) || 'Root' in all;
    if (isRenamed) for (const [name, free] of names) this.#defs.set(free, rename(all[name] as JsonSchema));
    return isRenamed ? rename : (schema) => schema;
  }

  /** Those that the schema needs. */
  usedBy(schema: JsonSchema): Readonly<Record<string, JsonSchema>> {
    const used = new Map<string, JsonSchema>();
    const visit = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return;
      for (const [key, inner] of Object.entries(value)) {
        const name = key === '$ref' && typeof inner === 'string' ? REFERENCE.exec(inner)?.[1] : undefined;
        const target = name === undefined || used.has(name) ? undefined : this.#defs.get(name);
        if (target === undefined) visit(inner);
        else {
          used.set(name as string, target);
          visit(target);
        }
      }
    };
    visit(schema);
    return Object.fromEntries(used);
  }
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function refersToRoot(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, inner]) => (key === '$ref' ? inner === '#' : refersToRoot(inner)));
}

function renamed(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((each) => renamed(each, names));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (key !== '$ref' || typeof inner !== 'string') return [key, renamed(inner, names)];
      const name = inner === '#' ? 'Root' : REFERENCE.exec(inner)?.[1];
      return [key, name === undefined ? inner : `#/$defs/${names.get(name) ?? name}`];
    }),
  );
}

/** Formats of JSON Schema that official clients know. They complain about others, such as `decimal`, at each call. */
const FORMATS: ReadonlySet<unknown> = new Set([
  'date-time',
  'date',
  'time',
  'duration',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'json-pointer',
  'regex',
  'relative-json-pointer',
  'uri',
  'uri-reference',
  'uri-template',
  'uuid',
]);

/** Members that contain values, not schemas. */
const VALUES: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'examples']);

/**
 * Without what is for documents of ours: `x-style`, `x-visible-to`, formats of our own, …. Undefined members are left out, too. What may be null is
 * written with `anyOf`: clients that hand schemas to a model with one `type` per value reject, or lose, a list of types.
 */
export function plainSchema(schema: JsonSchema): JsonSchema {
  return plain(schema, false) as JsonSchema;
}

function plain(value: unknown, isNames: boolean): unknown {
  if (Array.isArray(value)) return value.map((each) => plain(each, false));
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).filter(([name, inner]) => inner !== undefined && (isNames || !isOurs(name, inner)));
  const schema = Object.fromEntries(
    members.map(([name, inner]) => [
      name,
      !isNames && VALUES.has(name) ? inner : plain(inner, !isNames && (name === 'properties' || name === '$defs')),
    ]),
  );
  return isNames ? schema : withNullApart(schema);
}

function isOurs(name: string, value: unknown): boolean {
  return name.startsWith('x-') || (name === 'format' && !FORMATS.has(value));
}

/** Members that describe a value and do not restrict it. */
const ANNOTATIONS: ReadonlySet<string> = new Set(['title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly']);

function withNullApart(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { type, enum: allowed } = schema;
  const isSplit = Array.isArray(type) && type.length === 2 && type.includes('null') && !('anyOf' in schema) && !('const' in schema);
  // A list of values without null does not allow it, whatever the type says.
  if (!isSplit || (Array.isArray(allowed) && !allowed.includes(null))) return schema;
  const entries = Object.entries(schema).filter(([name]) => name !== 'type' && name !== 'enum');
  const about = Object.fromEntries(entries.filter(([name]) => ANNOTATIONS.has(name)));
  const rules = Object.fromEntries(entries.filter(([name]) => !ANNOTATIONS.has(name)));
  const values = Array.isArray(allowed) ? { enum: allowed.filter((each) => each !== null) } : {};
  return { ...about, anyOf: [{ type: type.find((each) => each !== 'null') as string, ...rules, ...values }, { type: 'null' }] };
}
