/** The keywords samples know, of JSON Schema 2020-12. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly prefixItems?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly $ref?: string;
}
export type Schema = JsonSchema | boolean;

type Combine = (left: never, right: never) => unknown;
const largest: Combine = (left: number, right: number) => Math.max(left, right);
const smallest: Combine = (left: number, right: number) => Math.min(left, right);
const union: Combine = (left: readonly string[], right: readonly string[]) => [...new Set([...left, ...right])];
const listed: Combine = (left: readonly Schema[], right: readonly Schema[]) => [...left, ...right];
const both: Combine = (left: Schema, right: Schema) => mergeSchemas([left, right]);
const keyed: Combine = (left: Record<string, Schema>, right: Record<string, Schema>) => {
  const merged: Record<string, Schema> = { ...left };
  for (const [name, schema] of Object.entries(right)) merged[name] = name in left ? mergeSchemas([left[name]!, schema]) : schema;
  return merged;
};
const types: Combine = (left: string | string[], right: string | string[]) => {
  const allowed = new Set([right].flat());
  // Every integer is a number: the narrower of the two stays.
  return [left]
    .flat()
    .flatMap((type) =>
      allowed.has(type)
        ? [type]
        : type === 'number' && allowed.has('integer')
          ? ['integer']
          : type === 'integer' && allowed.has('number')
            ? ['integer']
            : [],
    );
};
const shared: Combine = (left: readonly unknown[], right: readonly unknown[]) =>
  left.filter((value) => right.some((other) => JSON.stringify(other) === JSON.stringify(value)));

const COMBINE: Readonly<Record<string, Combine>> = {
  minimum: largest, exclusiveMinimum: largest, minLength: largest, minItems: largest, minProperties: largest, minContains: largest,
  maximum: smallest, exclusiveMaximum: smallest, maxLength: smallest, maxItems: smallest, maxProperties: smallest, maxContains: smallest,
  required: union, properties: keyed, patternProperties: keyed, items: both, additionalProperties: both, propertyNames: both, type: types, enum: shared, allOf: listed,
}; // prettier-ignore

/** One schema that asks for everything the given ones ask for. Keywords without a rule keep the first; the caller checks the sample. */
export function mergeSchemas(schemas: readonly Schema[]): Schema {
  let merged: Record<string, unknown> = {};
  for (const schema of schemas) {
    if (schema === false) return false;
    if (schema === true) continue;
    const next = { ...merged };
    for (const [keyword, value] of Object.entries(schema)) {
      const combine = COMBINE[keyword];
      if (!(keyword in next)) next[keyword] = value;
      else if (combine !== undefined) next[keyword] = combine(next[keyword] as never, value as never);
      // Two choices of which both must hold: keep one as the choice and the other as a demand.
      else if (keyword === 'anyOf' || keyword === 'oneOf')
        next['allOf'] = [...((next['allOf'] as Schema[] | undefined) ?? []), { [keyword]: value }];
    }
    merged = next;
  }
  return merged;
}

/** Follows `#/…` references inside the document the schema came from. */
export function dereference(root: Schema, reference: string): Schema {
  if (!reference.startsWith('#'))
    throw new Error(`The reference ${reference} leaves the schema; only references inside it (#/…) can be followed.`);
  let node: unknown = root;
  for (const part of reference.slice(1).split('/').filter(Boolean)) {
    const name = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
    node = typeof node === 'object' && node !== null && Object.hasOwn(node, name) ? (node as Record<string, unknown>)[name] : undefined;
  }
  if (node === undefined) throw new Error(`The reference ${reference} points at nothing.`);
  return node as Schema;
}
