import { readFileSync } from 'node:fs';
import type { JsonSchema } from '../../http/declare/schema.ts';
import { pascalCase } from '../schema-names.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- a JSON Schema
type Json = any;

const KEYWORDS = new Set(
  'False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield'.split(
    ' ',
  ),
);

const NONE: ReadonlySet<string> = new Set();

/** A name of the API as an identifier. Words of the language and names that are taken get an underscore. */
export function pythonName(name: string, taken: ReadonlySet<string> = NONE): string {
  // Python renames what begins with two underscores in a class.
  const plain = name.replaceAll(/\W/g, '_').replace(/^(?=\d)|^_+/, '_');
  return KEYWORDS.has(plain) || taken.has(plain) ? `${plain}_` : plain;
}

/** Names that differ only in what an identifier cannot have are numbered: `a-b` beside `a_b` is `a_b_2`. */
export function pythonNames(names: readonly string[], others: ReadonlySet<string> = NONE): string[] {
  const taken = new Set<string>();
  return names.map((name) => {
    const plain = pythonName(name, others);
    let free = plain;
    for (let count = 2; taken.has(free); count += 1) free = `${plain}_${count}`;
    taken.add(free);
    return free;
  });
}

/** A text of the API as a string literal. JSON's escapes are Python's. */
export function pythonText(text: string): string {
  return JSON.stringify(text).replaceAll(/[\u{7F}-\u{10FFFF}]/gu, (character) => {
    const code = character.codePointAt(0)!.toString(16);
    // Python does not join surrogates.
    return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`;
  });
}

/** Built-in types: a method or a member of such a name would hide the type. */
export const BUILT_IN: ReadonlySet<string> = new Set('bool bytes dict float int list object set str tuple type'.split(' '));
const PARTS = ['runtime', 'uploads'] as const;

/** A part of the client that is the same for every API. */
export function runtimePart(name: (typeof PARTS)[number]): string {
  return readFileSync(new URL(`python-${name}.txt`, import.meta.url), 'utf8').trimEnd();
}

let reserved: ReadonlySet<string> | undefined;

/** Names of the module that the API must not take: what its own part imports, defines or uses. */
export function reservedNames(): ReadonlySet<string> {
  if (reserved !== undefined) return reserved;
  const code = PARTS.map(runtimePart)
    .join('\n')
    .replaceAll(/""".*?"""|"[^"\n]*"|#[^\n]*/gs, '');
  const imported = [...code.matchAll(/^(?:from \S+ )?import (.+)$/gm)].flatMap(([, names = '']) => names.match(/\w+/g) ?? []);
  const defined = [...code.matchAll(/^(?:(?:async )?def |class )?(\w+)/gm)].map(([, name = '']) => name);
  const called = [...code.matchAll(/(?<!\.|def )\b([a-z]\w*)\(/g)].map(([, name = '']) => name);
  const classes = code.match(/\b[A-Z]\w*/g) ?? [];
  return (reserved = new Set([...BUILT_IN, 'Client', 'AsyncClient', ...imported, ...defined, ...called, ...classes]));
}

/** Types of schemas; objects without a name become classes named after their place. */
export class PythonTypes {
  readonly #schemas: Readonly<Record<string, JsonSchema>>;
  readonly #classes = new Map<string, string>();
  readonly #byText = new Map<string, string>();

  constructor(schemas: Readonly<Record<string, JsonSchema>>) {
    this.#schemas = schemas;
    for (const [name, schema] of Object.entries(schemas))
      if (name !== 'Problem' && name !== 'FieldError') this.#define(this.#name(name), schema);
  }

  /** Names of classes and aliases: within a class, a method of the same name would hide it. */
  get names(): ReadonlySet<string> {
    return new Set(this.#classes.keys());
  }

  definitions(): string {
    return [...this.#classes.values()].join('\n\n\n');
  }

  #name(name: string): string {
    const plain = pythonName(name);
    return reservedNames().has(plain) ? `${plain}Schema` : plain;
  }

  #define(name: string, schema: JsonSchema): void {
    this.#classes.set(name, '');
    const json = this.#flat(schema) as Json;
    this.#classes.set(
      name,
      isObject(json) ? this.#classText(name, json) : `${name}: TypeAlias = ${pythonText(this.of(schema, name, true))}`,
    );
  }

  /** `allOf` of objects is one object. */
  #flat(schema: JsonSchema): JsonSchema {
    const json = schema as Json;
    if (!Array.isArray(json.allOf)) return schema;
    const parts: Json[] = [
      json,
      ...json.allOf.map((each: Json) =>
        this.#flat(typeof each.$ref === 'string' ? (this.#schemas[each.$ref.split('/').at(-1)] ?? {}) : each),
      ),
    ];
    return {
      type: 'object',
      properties: Object.assign({}, ...parts.map((each) => each.properties ?? {})),
      required: [...new Set(parts.flatMap((each) => each.required ?? []))],
    };
  }

  #classText(name: string, json: Json): string {
    const required = new Set<string>(json.required ?? []);
    const members = Object.entries<Json>(json.properties).map(([key, schema]) => {
      const type = this.of(schema, `${name}${pascalCase(key)}`);
      return [key, required.has(key) ? type : `NotRequired[${type}]`] as const;
    });
    const isPlain = members.every(([key]) => pythonName(key) === key);
    // A member with the name of a type would hide it from the members below.
    const used = new Set(members.flatMap(([, type]) => type.match(/\w+/g) ?? []));
    if (!isPlain || members.some(([key]) => used.has(key)))
      return `${name} = TypedDict(${pythonText(name)}, {${members.map(([key, type]) => `${pythonText(key)}: ${pythonText(type)}`).join(', ')}})`;
    return `class ${name}(TypedDict):\n${members.map(([key, type]) => `    ${key}: ${type}`).join('\n') || '    pass'}`;
  }

  of(schema: JsonSchema | boolean | undefined, place: string, isRoot = false): string {
    if (schema === undefined || typeof schema === 'boolean') return 'Any';
    const json = schema as Json;
    if (typeof json.$ref === 'string') {
      const name = json.$ref.split('/').at(-1) as string;
      return name === 'FieldError' ? name : this.#name(name);
    }
    if ('const' in json) return literals([json.const]);
    if (Array.isArray(json.enum)) return literals(json.enum);
    const alternatives = json.anyOf ?? json.oneOf;
    if (Array.isArray(alternatives)) return union(alternatives.map((each: Json, index: number) => this.of(each, `${place}${index + 1}`)));
    if (Array.isArray(json.allOf) || isObject(json)) return isRoot ? 'Any' : this.#class(place, json);
    const types: (string | undefined)[] = Array.isArray(json.type) ? json.type : [json.type];
    return union(types.map((type) => this.#ofType(type, json, place)));
  }

  #ofType(type: string | undefined, json: Json, place: string): string {
    if (type === 'string') return 'str';
    if (type === 'integer') return 'int';
    if (type === 'number') return 'float';
    if (type === 'boolean') return 'bool';
    if (type === 'null') return 'None';
    if (type === 'array') return `List[${this.#itemOf(json, place)}]`;
    if (type === 'object' && json.properties !== undefined && Object.keys(json.properties).length > 0)
      return this.#class(place, { ...json, type: 'object' });
    if (type === 'object')
      return `dict[str, ${typeof json.additionalProperties === 'object' ? this.of(json.additionalProperties, `${place}Value`) : 'Any'}]`;
    return 'Any';
  }

  /** Positions of a list cannot have types of their own. */
  #itemOf({ items, prefixItems = [] }: Json, place: string): string {
    if (prefixItems.length === 0) return this.of(items, `${place}Item`);
    const each: Json[] = typeof items === 'object' ? [...prefixItems, items] : prefixItems;
    return union(each.map((item, index) => this.of(item, `${place}Item${index + 1}`)));
  }

  /** The same object in several places is one class. */
  #class(place: string, json: Json): string {
    const text = JSON.stringify(json);
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    let name = this.#name(place);
    for (let count = 2; this.#classes.has(name); count += 1) name = `${this.#name(place)}${count}`;
    this.#byText.set(text, name);
    this.#define(name, json as JsonSchema);
    return name;
  }
}

const isObject = (json: Json): boolean =>
  json.type === 'object' && json.properties !== undefined && Object.keys(json.properties).length > 0;

function literals(values: readonly unknown[]): string {
  const simple = values.every((value) => value === null || ['string', 'boolean'].includes(typeof value) || Number.isInteger(value));
  if (!simple) return 'Any';
  const texts = values.map((value) =>
    value === null
      ? 'None'
      : typeof value === 'string'
        ? pythonText(value)
        : typeof value === 'boolean'
          ? value
            ? 'True'
            : 'False'
          : JSON.stringify(value),
  );
  return `Literal[${texts.join(', ')}]`;
}

function union(types: readonly string[]): string {
  const each = [...new Set(types)];
  if (each.includes('Any') || each.length === 0) return 'Any';
  return each.length === 1 ? each[0]! : `Union[${each.join(', ')}]`;
}
