import { isObject, type Json, withLocalReferences } from './local-references.ts';

/** Nesting beyond this is `unknown`, so that a schema cannot exhaust the stack. */
const DEPTH_MAX = 64;

/**
 * A TypeScript module for a JSON Schema: the type `name`, and one for each definition that is referred to. Keywords that types cannot
 * express are left out, so a document that satisfies the schema has the type; the reverse is the schema's task. A schema with
 * `properties` or `items` but without `type` is taken as one of an object or array, as its author means it.
 */
export function typescriptTypes(schema: unknown, name: string, heading: string): string {
  const writer = new Writer(withLocalReferences(schema, '#'), name);
  return `// ${oneLine(heading)}\n\n${writer.write()}`;
}

class Writer {
  readonly #root: unknown;
  readonly #names = new Map<string, string>();
  readonly #pending: string[] = [];
  readonly #taken: Set<string>;
  readonly #name: string;

  constructor(root: unknown, name: string) {
    this.#root = root;
    this.#name = name;
    this.#taken = new Set([name]);
    this.#names.set('#', name);
  }

  write(): string {
    const declarations = [this.#declaration(this.#name, '#')];
    for (let pointer = this.#pending.shift(); pointer !== undefined; pointer = this.#pending.shift()) {
      declarations.push(this.#declaration(this.#names.get(pointer)!, pointer));
    }
    return declarations.join('\n');
  }

  #declaration(name: string, pointer: string): string {
    const schema = resolvePointer(this.#root, pointer);
    // A schema that is itself, or itself or something else, allows everything; such a type would not compile.
    const type = this.#isCircular(pointer) ? 'unknown' : this.#type(schema, '', 0);
    return `${comment(schema, '')}export type ${name} = ${type};\n`;
  }

  /** Whether a schema leads to itself without an object or array in between. */
  #isCircular(pointer: string): boolean {
    const seen = new Set<string>();
    const waiting = aliases(resolvePointer(this.#root, pointer));
    for (let ref = waiting.pop(); ref !== undefined; ref = waiting.pop()) {
      if (ref === pointer) return true;
      if (seen.has(ref)) continue;
      seen.add(ref);
      waiting.push(...aliases(resolvePointer(this.#root, ref)));
    }
    return false;
  }

  #type(schema: unknown, indent: string, depth: number): string {
    if (!isObject(schema) || depth > DEPTH_MAX) return schema === false ? 'never' : 'unknown';
    const parts: string[] = [];
    if (typeof schema['$ref'] === 'string') parts.push(this.#reference(schema['$ref']));
    if ('const' in schema) parts.push(literal(schema['const']));
    else if (Array.isArray(schema['enum'])) parts.push(union(schema['enum'].map(literal)));
    else parts.push(this.#byType(schema, indent, depth));
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      const choices = schema[keyword];
      if (Array.isArray(choices)) parts.push(union(choices.map((choice) => this.#type(choice, indent, depth + 1))));
    }
    if (Array.isArray(schema['allOf'])) parts.push(...schema['allOf'].map((each) => this.#type(each, indent, depth + 1)));
    return intersection(parts);
  }

  #byType(schema: Json, indent: string, depth: number): string {
    const { type } = schema;
    const types = typeof type === 'string' ? [type] : Array.isArray(type) ? type : impliedTypes(schema);
    if (types.length === 0) return 'unknown';
    return union(types.map((each) => this.#ofType(String(each), schema, indent, depth)));
  }

  #ofType(type: string, schema: Json, indent: string, depth: number): string {
    switch (type) {
      case 'string':
      case 'boolean':
      case 'null':
        return type;
      case 'integer':
      case 'number':
        return 'number';
      case 'array':
        return this.#array(schema, indent, depth);
      case 'object':
        return this.#object(schema, indent, depth);
      default:
        return 'unknown';
    }
  }

  #array(schema: Json, indent: string, depth: number): string {
    // Items at fixed positions may be fewer than listed, which a tuple type would deny.
    if (Array.isArray(schema['prefixItems']) || Array.isArray(schema['items'])) return 'unknown[]';
    const items = this.#type(schema['items'] ?? true, indent, depth + 1);
    return /[ |&]/.test(items) ? `(${items})[]` : `${items}[]`;
  }

  #object(schema: Json, indent: string, depth: number): string {
    const properties = isObject(schema['properties']) ? schema['properties'] : {};
    const required = new Set(Array.isArray(schema['required']) ? schema['required'] : []);
    const inner = `${indent}  `;
    const lines = Object.keys(properties).map((key) => {
      const optional = required.has(key) ? '' : '?';
      return `${comment(properties[key], inner)}${inner}${propertyName(key)}${optional}: ${this.#type(properties[key], inner, depth + 1)};\n`;
    });
    const others = schema['additionalProperties'];
    const open = isObject(schema['patternProperties']) || (lines.length === 0 ? others !== false : isObject(others));
    // Beside other keys an index signature must admit their types as well.
    if (open)
      lines.push(`${inner}[key: string]: ${lines.length === 0 && isObject(others) ? this.#type(others, inner, depth + 1) : 'unknown'};\n`);
    return lines.length === 0 ? '{}' : `{\n${lines.join('')}${indent}}`;
  }

  #reference(ref: string): string {
    // Another document is not loaded.
    if ((ref !== '#' && !ref.startsWith('#/')) || resolvePointer(this.#root, ref) === undefined) return 'unknown';
    let name = this.#names.get(ref);
    if (name === undefined) {
      name = this.#freeName(typeName(ref.split('/').at(-1) ?? ''));
      this.#names.set(ref, name);
      this.#pending.push(ref);
    }
    return name;
  }

  #freeName(wanted: string): string {
    let name = wanted;
    for (let count = 2; this.#taken.has(name); count++) name = `${wanted}${count}`;
    this.#taken.add(name);
    return name;
  }
}

/** `billing-api` as a type: `BillingApi`. */
export function typeName(text: string): string {
  const words = text.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  const name = words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join('');
  return /^[A-Za-z]/.test(name) ? name : `Type${name}`;
}

function impliedTypes(schema: Json): string[] {
  if ('properties' in schema || 'additionalProperties' in schema || 'required' in schema) return ['object'];
  return 'items' in schema ? ['array'] : [];
}

/** The references that a schema consists of: its own and those of its alternatives. */
function aliases(schema: unknown, depth = 0): string[] {
  if (!isObject(schema) || depth > DEPTH_MAX) return [];
  const parts = ['anyOf', 'oneOf', 'allOf'].flatMap((keyword) => (Array.isArray(schema[keyword]) ? (schema[keyword] as unknown[]) : []));
  return [...(typeof schema['$ref'] === 'string' ? [schema['$ref']] : []), ...parts.flatMap((part) => aliases(part, depth + 1))];
}

function resolvePointer(root: unknown, ref: string): unknown {
  let value: unknown = root;
  for (const part of ref.split('/').slice(1)) {
    const key = decode(part).replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Json)[key];
  }
  return value;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function literal(value: unknown): string {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return JSON.stringify(value);
  return 'unknown';
}

function union(types: readonly string[]): string {
  const distinct = [...new Set(types)];
  if (distinct.includes('unknown')) return 'unknown';
  return distinct.length === 0
    ? 'never'
    : distinct.map((type) => (type.includes('&') && distinct.length > 1 ? `(${type})` : type)).join(' | ');
}

function intersection(types: readonly string[]): string {
  const telling = [...new Set(types)].filter((type) => type !== 'unknown');
  if (telling.length === 0) return 'unknown';
  return telling.length === 1 ? telling[0]! : telling.map((type) => (/[|]/.test(type) ? `(${type})` : type)).join(' & ');
}

function propertyName(key: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key);
}

function comment(schema: unknown, indent: string): string {
  const text = isObject(schema) ? (schema['description'] ?? schema['title']) : undefined;
  return typeof text === 'string' && text.trim() !== '' ? `${indent}/** ${oneLine(text).replaceAll('*/', '*\\/')} */\n` : '';
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
