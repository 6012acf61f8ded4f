import type { JsonSchema } from '../http/schema.ts';
import { hoistComponents } from './hoist-components.ts';

export type Direction = 'input' | 'output';

interface Definition {
  readonly name: string;
  readonly signature: string;
  readonly direction: Direction;
  readonly schema: JsonSchema;
  /** The document the definition came from; its references point there. */
  readonly source: JsonSchema;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);
const definitionsOf = (json: JsonSchema): Readonly<Record<string, JsonSchema>> =>
  isObject(json['$defs']) ? (json['$defs'] as Record<string, JsonSchema>) : {};
const isAnonymous = (name: string): boolean => name.startsWith('__schema');
const componentName = (name: string): string => name.replaceAll(/[^\w.-]/g, '_');

/** Calls `visit` for every `$ref` inside, without entering `$defs`. */
function references(value: unknown, visit: (reference: string) => void): void {
  if (Array.isArray(value)) for (const item of value) references(item, visit);
  if (!isObject(value)) return;
  for (const [key, inner] of Object.entries(value)) {
    if (key === '$ref' && typeof inner === 'string') visit(inner);
    else if (key !== '$defs') references(inner, visit);
  }
}

/** Two definitions are one component only if everything they refer to is the same too. */
function signatureOf(name: string, source: JsonSchema): string {
  const definitions = definitionsOf(source);
  const seen = new Set<string>();
  const visit = (current: string): void => {
    if (seen.has(current) || definitions[current] === undefined) return;
    seen.add(current);
    references(definitions[current], (reference) => visit(reference.replace('#/$defs/', '')));
  };
  visit(name);
  return JSON.stringify([...seen].sort().map((each) => [each, definitions[each]]));
}

/**
 * Collects the named schemas (`$defs`) of all routes under `#/components/schemas`. A name whose input and output
 * differ (a default makes a field optional on the way in) becomes `Name` for what leaves and `NameInput` for what arrives.
 */
export class SchemaComponents {
  readonly #reserved: readonly string[];
  readonly #definitions: Definition[] = [];
  readonly #names = new Map<string, string>();
  readonly #schemas = new Map<string, JsonSchema>();

  /** `reserved` are names of other schemas of the document. */
  constructor(reserved: readonly string[] = []) {
    this.#reserved = reserved;
  }

  /** First pass, in a stable order: learn every definition before any name is given. */
  learn(given: JsonSchema | undefined, direction: Direction): void {
    if (given === undefined) return;
    const json = hoistComponents(given);
    for (const [name, schema] of Object.entries(definitionsOf(json))) {
      if (!isAnonymous(name)) this.#definitions.push({ name, signature: signatureOf(name, json), direction, schema, source: json });
    }
  }

  /** Second pass: what leaves has the first claim to the plain name. */
  settle(): void {
    const outputsFirst = this.#definitions.toSorted((a, b) => Number(a.direction === 'input') - Number(b.direction === 'input'));
    const taken = new Map<string, Direction | 'reserved'>(this.#reserved.map((name) => [name, 'reserved']));
    for (const { name, signature, direction } of outputsFirst) {
      if (this.#names.has(name + signature)) continue;
      const base = componentName(name);
      const candidates = [
        base,
        ...(direction === 'input' && taken.get(base) === 'output' ? [`${base}Input`] : []),
        ...Array.from({ length: 1000 }, (_, index) => `${base}${index + 2}`),
      ];
      const free = candidates.find((candidate) => !taken.has(candidate))!;
      taken.set(free, direction);
      this.#names.set(name + signature, free);
    }
    for (const { name, signature, schema, source } of this.#definitions) {
      const component = this.#names.get(name + signature)!;
      if (!this.#schemas.has(component)) this.#schemas.set(component, this.#rewrite(schema, source, component) as JsonSchema);
    }
  }

  /** The schema as it stands in the document; `fallback` names what has to be a component but has no name of its own. */
  place(given: JsonSchema, fallback: string): JsonSchema {
    const json = hoistComponents(given);
    const { $defs: _, ...root } = json;
    let isRecursive = false;
    references(root, (reference) => (isRecursive ||= reference === '#'));
    const name = componentName(fallback);
    const placed = this.#rewrite(root, json, name) as JsonSchema;
    for (const [inner, schema] of Object.entries(definitionsOf(json))) {
      if (isAnonymous(inner)) this.#schemas.set(`${name}${inner.slice(2)}`, this.#rewrite(schema, json, name) as JsonSchema);
    }
    if (!isRecursive) return placed;
    this.#schemas.set(name, placed);
    return { $ref: `#/components/schemas/${name}` };
  }

  #rewrite(value: unknown, source: JsonSchema, owner: string): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#rewrite(item, source, owner));
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) =>
        key === '$ref' && typeof inner === 'string'
          ? [key, this.#target(inner, source, owner)]
          : [key, this.#rewrite(inner, source, owner)],
      ),
    );
  }

  #target(reference: string, source: JsonSchema, owner: string): string {
    if (reference === '#') return `#/components/schemas/${owner}`;
    const name = reference.replace('#/$defs/', '');
    if (isAnonymous(name)) return `#/components/schemas/${owner}${name.slice(2)}`;
    return `#/components/schemas/${this.#names.get(name + signatureOf(name, source)) ?? componentName(name)}`;
  }

  /** The schema behind a reference, for places that cannot hold one (parameters). */
  resolve(schema: JsonSchema): JsonSchema {
    const reference = schema['$ref'];
    return typeof reference === 'string' ? (this.#schemas.get(reference.replace('#/components/schemas/', '')) ?? schema) : schema;
  }

  all(): Readonly<Record<string, JsonSchema>> {
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}
