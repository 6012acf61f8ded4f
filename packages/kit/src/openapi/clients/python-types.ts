import type { JsonSchema } from '../../http/schema.ts';
import { pascalCase } from '../schema-names.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- a JSON Schema
type Json = any;

const KEYWORDS = new Set(
  'False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield self call'.split(
    ' ',
  ),
);

/** A name of the API as an identifier. */
export function pythonName(name: string): string {
  const plain = name.replaceAll(/\W/g, '_').replace(/^(?=\d)/, '_');
  return KEYWORDS.has(plain) ? `${plain}_` : plain;
}

/** A text of the API as a string literal. JSON's escapes are Python's. */
export function pythonText(text: string): string {
  return JSON.stringify(text).replaceAll(/[\u007F-\uFFFF]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Names of the module that a schema must not take. */
const RESERVED = new Set([
  'Problem',
  'FieldError',
  'StreamEvent',
  'CallOptions',
  'Client',
  'AsyncClient',
  'Any',
  'Literal',
  'Union',
  'Mapping',
  'Generic',
  'Iterator',
  'Callable',
]);

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

  definitions(): string {
    return [...this.#classes.values()].join('\n\n\n');
  }

  #name(name: string): string {
    const plain = pythonName(name);
    return RESERVED.has(plain) ? `${plain}Schema` : plain;
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
    const isPlain = members.every(([key]) => pythonName(key) === key || key === 'self' || key === 'call');
    if (!isPlain || members.some(([key]) => key.startsWith('__')))
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
    if (type === 'array') return `List[${this.of(json.items, `${place}Item`)}]`;
    if (type === 'object' && json.properties !== undefined && Object.keys(json.properties).length > 0)
      return this.#class(place, { ...json, type: 'object' });
    if (type === 'object')
      return `dict[str, ${typeof json.additionalProperties === 'object' ? this.of(json.additionalProperties, `${place}Value`) : 'Any'}]`;
    return 'Any';
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
