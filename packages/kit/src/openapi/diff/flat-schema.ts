import { isMembers } from '../../options/value-rule.ts';
import { UUID_PATTERN } from '../../db/values/uuid.ts';

export type Json = Readonly<Record<string, unknown>>;

/** Keywords that say something to people only. */
const ANNOTATIONS = new Set([
  'description',
  'title',
  'example',
  'examples',
  'externalDocs',
  'xml',
  '$comment',
  'summary',
  '$id',
  '$schema',
]);

/** The name behind `$ref` where the schema is that reference and nothing else. */
export function pureReference(schema: unknown): string | undefined {
  if (!isMembers(schema) || typeof schema['$ref'] !== 'string') return undefined;
  return Object.keys(schema).every((key) => key === '$ref' || ANNOTATIONS.has(key)) ? schema['$ref'] : undefined;
}

export function resolve(reference: string, document: Json): unknown {
  if (reference === '#') return document;
  return reference
    .slice(2)
    .split('/')
    .reduce<unknown>(
      (at, step) => (isMembers(at) ? at[decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')] : undefined),
      document,
    );
}

/** Follows references of parameters, bodies, responses and headers. */
export function followed(holder: unknown, document: Json, depth = 0): Json {
  if (!isMembers(holder)) return {};
  const reference = holder['$ref'];
  if (typeof reference !== 'string' || !reference.startsWith('#/') || depth > 20) return holder;
  return followed(resolve(reference, document), document, depth + 1);
}

/** Above this many combinations of alternatives a schema is compared by its other keywords only. */
const ALTERNATIVES_MAX = 256;

/**
 * Schemas of one document without references and `allOf` at their top, and in the words of JSON Schema 2020-12 (`nullable`, boolean
 * `exclusiveMinimum`, `const` and boolean schemas become what they mean). The result of a schema is always the same object, so that what is
 * built for nested schemas can be recognized, and a recursive schema ends.
 */
export class FlatSchemas {
  readonly #document: Json;
  readonly #known = new WeakMap<object, Json>();
  readonly #references = new Map<string, Json>();
  readonly #alternatives = new WeakMap<Json, readonly unknown[]>();

  constructor(document: Json) {
    this.#document = document;
  }

  of(schema: unknown): Json {
    if (schema === false) return NEVER;
    if (!isMembers(schema)) return ANYTHING;
    const known = this.#known.get(schema);
    if (known !== undefined) return known;
    // A reference that leads to itself admits anything.
    this.#known.set(schema, ANYTHING);
    const flat = this.#flatten(schema);
    this.#known.set(schema, flat);
    return flat;
  }

  #flatten({ $ref, allOf, ...own }: Json): Json {
    let flat = modern(own);
    if (typeof $ref === 'string') flat = merged(this.#referenced($ref), flat);
    for (const part of Array.isArray(allOf) ? allOf : []) flat = merged(flat, this.of(part));
    return flat;
  }

  #referenced(reference: string): Json {
    const known = this.#references.get(reference);
    if (known !== undefined) return known;
    this.#references.set(reference, ANYTHING);
    const flat = this.of(resolve(reference, this.#document));
    this.#references.set(reference, flat);
    return flat;
  }

  /** The branches of a union, each with what stands beside it; undefined where the schema is none. */
  alternativesOf(schema: unknown): readonly unknown[] {
    const flat = this.of(schema);
    const known = this.#alternatives.get(flat);
    if (known !== undefined) return known;
    // A union that leads back to itself has no further alternatives there.
    this.#alternatives.set(flat, []);
    const { anyOf, ...beside } = flat;
    const isAlone = Object.keys(beside).every((key) => ANNOTATIONS.has(key) || key === 'discriminator' || key === 'default');
    const { default: _, ...shared } = beside;
    const branches = Array.isArray(anyOf) ? anyOf.map((branch: unknown) => (isAlone ? branch : { allOf: [shared, branch] })) : [flat];
    const found = branches.flatMap((branch) => {
      const inner = this.of(branch);
      if (Array.isArray(inner['anyOf'])) return this.alternativesOf(branch);
      const types = inner['type'];
      return Array.isArray(types) && types.length > 1 ? types.map((type: unknown) => ofType(inner, String(type))) : [branch];
    });
    this.#alternatives.set(flat, found);
    return found;
  }
}

const ANYTHING: Json = Object.freeze({});
const NEVER: Json = Object.freeze({ type: [] });

function ofType(flat: Json, type: string): Json {
  const values = Array.isArray(flat['enum']) ? { enum: flat['enum'].filter((value) => typeNames(value).includes(type)) } : {};
  return type === 'null' ? { type: ['null'] } : { ...flat, ...values, type: [type] };
}

function typeNames(value: unknown): string[] {
  if (value === null) return ['null'];
  if (Array.isArray(value)) return ['array'];
  if (typeof value === 'number') return Number.isInteger(value) ? ['integer', 'number'] : ['number'];
  return [typeof value];
}

/** One schema's own keywords in the words of 2020-12. A pattern that repeats the format says nothing more. */
function modern(schema: Json): Json {
  const { nullable, const: constant, oneOf, anyOf, minimum, maximum, exclusiveMinimum, exclusiveMaximum, ...rest } = schema;
  const flat: Record<string, unknown> = { ...rest };
  if ('const' in schema) flat['enum'] = [constant];
  if (flat['format'] === 'uuid' && flat['pattern'] === UUID_PATTERN) delete flat['pattern'];
  const values = flat['enum'];
  if (Array.isArray(flat['type'])) flat['type'] = flat['type'].map(String);
  else if (typeof flat['type'] === 'string') flat['type'] = [flat['type']];
  else if (Array.isArray(values)) flat['type'] = [...new Set(values.map((value) => typeNames(value)[0]))];
  if (nullable === true && Array.isArray(flat['type']) && !flat['type'].includes('null'))
    flat['type'] = [...(flat['type'] as string[]), 'null'];
  const whole = Array.isArray(flat['type']) && flat['type'].every((type) => type === 'integer' || type === 'null');
  const bound = (inclusive: unknown, exclusive: unknown, step: 1 | -1): [unknown, unknown] => {
    const open = exclusive === true ? inclusive : typeof exclusive === 'number' ? exclusive : undefined;
    if (exclusive === true) inclusive = undefined;
    return whole && typeof open === 'number' ? [open + step, undefined] : [inclusive, open];
  };
  const [least, above] = bound(minimum, exclusiveMinimum, 1);
  const [most, below] = bound(maximum, exclusiveMaximum, -1);
  const bounds = { minimum: least, exclusiveMinimum: above, maximum: most, exclusiveMaximum: below };
  for (const [name, value] of Object.entries(bounds)) if (value !== undefined) flat[name] = value;
  const unions = [anyOf, oneOf].filter(Array.isArray) as unknown[][];
  if (unions.length > 0) flat['anyOf'] = unions.reduce(combined);
  return flat;
}

function combined(left: readonly unknown[], right: readonly unknown[]): unknown[] {
  if (left.length * right.length > ALTERNATIVES_MAX) return [...left];
  return left.flatMap((a) => right.map((b) => ({ allOf: [a, b] })));
}

const LARGER = new Set(['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties', 'minContains']);
const SMALLER = new Set(['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties', 'maxContains']);

/** Both schemas hold. */
function merged(a: Json, b: Json): Json {
  const flat: Record<string, unknown> = { ...a };
  for (const [name, value] of Object.entries(b)) flat[name] = name in a ? both(name, a[name], value) : value;
  return flat;
}

function both(name: string, a: unknown, b: unknown): unknown {
  if (name === 'type' && Array.isArray(a) && Array.isArray(b)) return shared(a as string[], b as string[]);
  if (name === 'enum' && Array.isArray(a) && Array.isArray(b)) {
    const texts = new Set(b.map((value) => JSON.stringify(value)));
    return a.filter((value) => texts.has(JSON.stringify(value)));
  }
  if (name === 'required' && Array.isArray(a) && Array.isArray(b)) return [...new Set([...(a as string[]), ...(b as string[])])];
  if ((name === 'properties' || name === 'patternProperties') && isMembers(a) && isMembers(b))
    return Object.fromEntries(
      [...new Set([...Object.keys(a), ...Object.keys(b)])].map((key) => [
        key,
        key in a && key in b ? { allOf: [a[key], b[key]] } : (a[key] ?? b[key]),
      ]),
    );
  if (name === 'anyOf' && Array.isArray(a) && Array.isArray(b)) return combined(a, b);
  if (LARGER.has(name)) return Math.max(Number(a), Number(b));
  if (SMALLER.has(name)) return Math.min(Number(a), Number(b));
  if (name === 'additionalProperties' || name === 'unevaluatedProperties' || name === 'items')
    return a === false || b === false ? false : isMembers(a) && isMembers(b) ? { allOf: [a, b] } : isMembers(a) ? a : b;
  if (name === 'uniqueItems') return a === true || b === true;
  if (name === 'pattern' && a !== b) return `${String(a)} and ${String(b)}`;
  if (name === 'not' && isMembers(a) && isMembers(b)) return { anyOf: [a, b] };
  return ANNOTATIONS.has(name) ? a : b;
}

/** The types that both lists admit; an integer is a number. */
function shared(a: readonly string[], b: readonly string[]): string[] {
  const admits = (types: readonly string[], type: string) => types.includes(type) || (type === 'integer' && types.includes('number'));
  return [...new Set([...a.filter((type) => admits(b, type)), ...b.filter((type) => admits(a, type))])];
}
