import { isMembers } from '../options/value-rule.ts';
import { UUID_PATTERN } from '../db/values/uuid.ts';
import type { JsonSchema } from '../http/declare/schema.ts';
import { extendSchemas } from './extended-schemas.ts';
import { hoistComponents } from './hoist-components.ts';

/** Members of a row that every caller gets unless the request leaves them out with `fields`: `required` of the document. */
export const ALWAYS_KEYWORD = 'x-always';

export type Direction = 'input' | 'output';

/** The route a schema was found in: where names are taken from when the schema has none, or another one has the same. */
export interface SchemaOwner {
  /** `Order` of OrderController. */
  readonly controller: string;
  /** The resource of generic CRUD, in Pascal case. */
  readonly resource?: string | undefined;
  /** The name of the schema itself where it has none: `ApiKey`. Not given: it stays where it is. */
  readonly fallback?: string | undefined;
  /** Of the operation, in Pascal case: no other schema without a name is called `ApiKeyRetrieveOutput`. */
  readonly operation: string;
}

/** Schemas with one name in one controller, which no rule tells apart. */
export interface NameClash {
  readonly name: string;
  readonly controller: string;
}

interface Definition {
  readonly name: string;
  readonly signature: string;
  readonly direction: Direction;
  readonly schema: JsonSchema;
  /** The document the definition came from; its references point there. */
  readonly source: JsonSchema;
  readonly owner: SchemaOwner;
  /** A whole body or response that has no name. */
  readonly isRoot: boolean;
}

const definitionsOf = (json: JsonSchema): Readonly<Record<string, JsonSchema>> =>
  isMembers(json['$defs']) ? (json['$defs'] as Record<string, JsonSchema>) : {};
const isAnonymous = (name: string): boolean => name.startsWith('__schema');
const componentName = (name: string): string => name.replaceAll(/[^\w.-]/g, '_');

/** Calls `visit` for every `$ref` inside, without entering `$defs`. */
function references(value: unknown, visit: (reference: string) => void): void {
  if (Array.isArray(value)) for (const item of value) references(item, visit);
  if (!isMembers(value)) return;
  for (const [key, inner] of Object.entries(value)) {
    if (key === '$ref' && typeof inner === 'string') visit(inner);
    else if (key !== '$defs') references(inner, visit);
  }
}

const definitionName = (reference: string): string => reference.replace('#/$defs/', '');

/** Definitions without a name that a schema refers to, itself or through others of them. */
function anonymousPartsOf(schema: JsonSchema, source: JsonSchema): ReadonlySet<string> {
  const definitions = definitionsOf(source);
  const found = new Set<string>();
  const visit = (reference: string): void => {
    const name = definitionName(reference);
    if (isAnonymous(name) && definitions[name] !== undefined) found.add(name);
  };
  references(schema, visit);
  for (const name of found) references(definitions[name], visit);
  return found;
}

/** Two definitions are one component only if everything they refer to is the same too. */
function signatureOf(name: string, source: JsonSchema): string {
  const definitions = definitionsOf(source);
  const seen = new Set<string>();
  const visit = (current: string): void => {
    if (seen.has(current) || definitions[current] === undefined) return;
    seen.add(current);
    references(definitions[current], (reference) => visit(definitionName(reference)));
  };
  visit(name);
  return JSON.stringify([...seen].sort().map((each) => [each, definitions[each]]));
}

/**
 * What leaves has the first claim to a plain name, then the controller that is called like the resource: named after itself, it has no other one. Then
 * the schema with the most properties. The order of routes does not matter.
 */
function byClaim(a: Definition, b: Definition): number {
  const width = ({ schema }: Definition) => Object.keys(isMembers(schema['properties']) ? schema['properties'] : {}).length;
  return (
    Number(a.direction === 'input') - Number(b.direction === 'input') ||
    Number(a.owner.controller !== a.owner.resource) - Number(b.owner.controller !== b.owner.resource) ||
    width(b) - width(a) ||
    compareTexts(a.owner.controller, b.owner.controller) ||
    compareTexts(a.signature, b.signature)
  );
}

const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** `Card` of BoardCardController is `BoardCard`, `CardInput` of ArchiveController is `ArchiveCardInput`. */
function namedAfterController(name: string, { controller, resource }: SchemaOwner): string {
  const isAbout = resource !== undefined && name.startsWith(resource) && controller.endsWith(resource);
  return isAbout ? `${controller}${name.slice(resource.length)}` : `${controller}${name}`;
}

/** Whether a person would name it: an object with properties, or a choice. */
const isNameable = (json: JsonSchema): boolean =>
  isMembers(json['properties']) || Array.isArray(json['anyOf']) || Array.isArray(json['oneOf']);

/** The items of a page: `{ items: [Order], count, … }`. */
function itemOf({ properties }: JsonSchema): JsonSchema | undefined {
  const { items, count } = (properties ?? {}) as { readonly items?: JsonSchema; readonly count?: unknown };
  return count !== undefined && isMembers(items?.['items']) ? items['items'] : undefined;
}

/** One schema of several routes has the shortest of their names. */
const shortest = (names: readonly string[]): string => names.toSorted((a, b) => a.length - b.length || compareTexts(a, b))[0]!;

/** Equal for schemas that are the same, with all they refer to. */
function rootSignature(json: JsonSchema): string {
  const known = signatures.get(json);
  if (known !== undefined) return known;
  const { $defs: _, ...root } = json;
  const names = new Set<string>();
  references(root, (reference) => names.add(definitionName(reference)));
  const signature = JSON.stringify([root, [...names].sort().map((name) => signatureOf(name, json))]);
  signatures.set(json, signature);
  return signature;
}

const signatures = new WeakMap<JsonSchema, string>();

/**
 * Collects the named schemas (`$defs`) of all routes under `#/components/schemas`, and those of bodies and responses that have no name. A name whose input and output
 * differ (a default makes a field optional on the way in) becomes `Name` for what leaves and `NameInput` for what arrives; other schemas of the same name are
 * named after their controllers.
 */
export class SchemaComponents {
  readonly #definitions: Definition[] = [];
  readonly #roots = new Map<string, Definition[]>();
  readonly #names = new Map<string, string>();
  readonly #rootNames = new Map<string, string>();
  readonly #schemas = new Map<string, JsonSchema>();
  readonly #taken: Set<string>;
  readonly clashes: NameClash[] = [];

  /** `reserved` are names of other schemas of the document. */
  constructor(reserved: readonly string[] = []) {
    this.#taken = new Set(reserved);
  }

  /** First pass: learn every definition before any name is given. */
  learn(given: JsonSchema | undefined, direction: Direction, owner: SchemaOwner): void {
    if (given === undefined) return;
    const json = hoistComponents(given);
    for (const [name, schema] of Object.entries(definitionsOf(json))) {
      if (!isAnonymous(name))
        this.#definitions.push({ name, signature: signatureOf(name, json), direction, schema, source: json, owner, isRoot: false });
    }
    if (owner.fallback === undefined || !isNameable(json)) return;
    const { $defs: _, ...schema } = json;
    const signature = rootSignature(json);
    const known = this.#roots.get(signature) ?? [];
    known.push({ name: owner.fallback, signature, direction, schema, source: json, owner, isRoot: true });
    this.#roots.set(signature, known);
  }

  /** Second pass: names. Pages are named after their items, so those are named first. */
  settle(): void {
    const roots = [...this.#roots].map(([, uses]): Definition => {
      const [first] = uses.toSorted(byClaim) as [Definition];
      return Object.assign({}, first, { name: shortest(uses.map(({ name }) => name)) });
    });
    const { pages = [], others = [] } = Object.groupBy(roots, ({ schema }) => (itemOf(schema) === undefined ? 'others' : 'pages'));
    this.#nameAll(this.#definitions, others);
    this.#nameAll(
      [],
      pages.map((each) => Object.assign({}, each, { name: this.#pageName(each) })),
    );
    this.#definitions.push(...others, ...pages);
    for (const { name, signature, schema, source, isRoot } of this.#definitions) {
      const component = (isRoot ? this.#rootNames.get(signature) : this.#names.get(name + signature))!;
      if (this.#schemas.has(component)) continue;
      this.#schemas.set(component, this.#rewriteMembers(schema, source, component));
      for (const inner of anonymousPartsOf(schema, source))
        this.#schemas.set(`${component}${inner.slice(2)}`, this.#rewriteMembers(definitionsOf(source)[inner]!, source, component));
    }
  }

  /** `OrderPage` for a page of `Order`, whatever name that has. */
  #pageName({ name, schema, source }: Definition): string {
    const item = itemOf(schema)!;
    const reference = item['$ref'];
    const named =
      typeof reference === 'string' && !isAnonymous(definitionName(reference))
        ? this.#target(reference, source, '').split('/').at(-1)
        : this.#rootNames.get(rootSignature({ ...item, $defs: source['$defs'] }));
    return named === undefined ? name : `${named}Page`;
  }

  #nameAll(definitions: readonly Definition[], roots: readonly Definition[]): void {
    const groups = Map.groupBy([...definitions, ...roots].toSorted(byClaim), ({ name }) => name);
    for (const [name, group] of [...groups].toSorted(([a], [b]) => compareTexts(a, b))) {
      let plain: Definition | undefined;
      const base = componentName(name);
      for (const definition of group) {
        const { signature, direction, owner, isRoot } = definition;
        const [names, key] = isRoot ? [this.#rootNames, signature] : [this.#names, name + signature];
        if (names.has(key)) continue;
        const after = componentName(namedAfterController(base, owner));
        const candidates = [
          base,
          ...(direction === 'input' && plain?.direction === 'output' && !groups.has(`${base}Input`) ? [`${base}Input`] : []),
          ...(groups.has(after) ? [] : [after]),
          ...(isRoot ? [`${owner.operation}${direction === 'input' ? 'Input' : 'Output'}`] : []),
        ];
        const free = candidates.find((candidate) => !this.#taken.has(candidate));
        if (free === undefined) this.clashes.push({ name, controller: owner.controller });
        plain ??= definition;
        this.#taken.add(free ?? base);
        names.set(key, free ?? base);
      }
    }
  }

  /** The schema as it stands in the document; `fallback` names what has to be a component but has no name of its own. */
  place(given: JsonSchema, fallback: string): JsonSchema {
    const json = hoistComponents(given);
    const named = this.#rootNames.get(rootSignature(json));
    if (named !== undefined) return { $ref: `#/components/schemas/${named}` };
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
    if (!isMembers(value)) return value;
    // The same schema as the whole response of another route, such as the items of a page.
    const named = isMembers(value['properties']) ? this.#rootNames.get(rootSignature({ ...value, $defs: source['$defs'] })) : undefined;
    if (named !== undefined && named !== owner) return { $ref: `#/components/schemas/${named}` };
    return this.#rewriteMembers(value, source, owner);
  }

  #rewriteMembers({ [ALWAYS_KEYWORD]: always, ...value }: JsonSchema, source: JsonSchema, owner: string): JsonSchema {
    const rewritten = Object.fromEntries(
      Object.entries(value).map(([key, inner]) =>
        key === '$ref' && typeof inner === 'string'
          ? [key, this.#target(inner, source, owner)]
          : [key, this.#rewrite(inner, source, owner)],
      ),
    );
    // The format says the same, in four letters.
    if (value['format'] === 'uuid' && value['pattern'] === UUID_PATTERN) delete rewritten['pattern'];
    // A tuple without a rest has no further items; Zod and others leave it unsaid.
    if (Array.isArray(value['prefixItems']) && value['items'] === undefined) rewritten['items'] = false;
    return always === undefined ? rewritten : { ...rewritten, required: always };
  }

  #target(reference: string, source: JsonSchema, owner: string): string {
    if (reference === '#') return `#/components/schemas/${owner}`;
    const name = definitionName(reference);
    if (isAnonymous(name)) return `#/components/schemas/${owner}${name.slice(2)}`;
    return `#/components/schemas/${this.#names.get(name + signatureOf(name, source)) ?? componentName(name)}`;
  }

  /** The schema behind a reference, for places that cannot hold one (parameters). */
  resolve(schema: JsonSchema): JsonSchema {
    const reference = schema['$ref'];
    return typeof reference === 'string' ? (this.#schemas.get(reference.replace('#/components/schemas/', '')) ?? schema) : schema;
  }

  all(): Readonly<Record<string, JsonSchema>> {
    const schemas = Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)));
    return extendSchemas(schemas, this.#outputs());
  }

  /** Components that no request uses. */
  #outputs(): ReadonlySet<string> {
    const componentOf = ({ name, signature, isRoot }: Definition) =>
      isRoot ? this.#rootNames.get(signature) : this.#names.get(name + signature);
    const { input = [], output = [] } = Object.groupBy(
      [...this.#definitions, ...[...this.#roots.values()].flat()],
      ({ direction }) => direction,
    );
    const asked = new Set(input.map(componentOf));
    return new Set(output.map(componentOf).filter((name) => name !== undefined && !asked.has(name)) as string[]);
  }
}
