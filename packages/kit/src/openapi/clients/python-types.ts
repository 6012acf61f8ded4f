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
const PARTS = ['runtime', 'http', 'uploads', 'upload'] as const;
/** Written for asyncio; the synchronous form is derived from it. */
const ASYNCHRONOUS: ReadonlySet<string> = new Set(['http', 'upload']);

/** A part of the client that is the same for every API. */
export function runtimePart(name: (typeof PARTS)[number]): string {
  const text = readFileSync(new URL(`python-${name}.txt`, import.meta.url), 'utf8').trimEnd();
  return ASYNCHRONOUS.has(name) ? `${synchronous(text)}\n\n\n${text}` : text;
}

/** The same code without `async` and `await`. */
function synchronous(text: string): string {
  return text
    .replaceAll(/\basyncio\.to_thread\(([^\s,]+), /g, '$1(')
    .replaceAll('asyncio.sleep', 'time.sleep')
    .replaceAll(/\b(?:async|await) /g, '')
    .replaceAll(/\b(_?)Async(?=[A-Z])/g, '$1')
    .replaceAll('_async_', '_')
    .replaceAll('Generator[Any, None]', 'Generator[Any, None, None]')
    .replaceAll(/\ba(iter_bytes|read|close|closing)\(/g, '$1(')
    .replaceAll('anext(', 'next(')
    .replaceAll(/__a(enter|exit|iter)__/g, '__$1__');
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

/** Objects of results are models with attributes, those of arguments are dictionaries. */
export type PythonRole = 'model' | 'argument';

/** Types of schemas; objects without a name become classes named after their place. */
export class PythonTypes {
  readonly #schemas: Readonly<Record<string, JsonSchema>>;
  readonly #models: ReadonlySet<string>;
  readonly #classes = new Map<string, string>();
  readonly #byText = new Map<string, string>();

  /** Of named schemas that are both, the dictionary has another name. */
  constructor(schemas: Readonly<Record<string, JsonSchema>>, results: readonly JsonSchema[]) {
    this.#schemas = schemas;
    this.#models = reached(schemas, results);
  }

  /** Names of classes and aliases: within a class, a method of the same name would hide it. */
  get names(): ReadonlySet<string> {
    return new Set(this.#classes.keys());
  }

  definitions(): string {
    return [...this.#classes.values()].join('\n\n\n');
  }

  /** The type of a list of paths, which operations of one row share. */
  paths(name: string, paths: readonly string[]): string {
    const own = this.#choice(this.#name(name), `Literal[${paths.map(pythonText).join(', ')}]`);
    return `List[${own}]`;
  }

  #choice(name: string, type: string): string {
    const text = `${name}: TypeAlias = ${pythonText(type)}`;
    let own = name;
    for (let count = 2; this.#classes.has(own) && this.#classes.get(own) !== text.replace(name, own); count += 1) own = `${name}${count}`;
    this.#classes.set(own, text.replace(name, own));
    return own;
  }

  #name(name: string): string {
    const plain = pythonName(name);
    return reservedNames().has(plain) ? `${plain}Schema` : plain;
  }

  /** The class or alias of a named schema. */
  #named(name: string, role: PythonRole): string {
    if (name === 'FieldError' || name === 'Problem') return name === 'FieldError' ? name : 'dict[str, Any]';
    const own = this.#name(role === 'argument' && this.#models.has(name) ? `${name}Dict` : name);
    if (!this.#classes.has(own)) this.#define(own, this.#schemas[name] ?? {}, role);
    return own;
  }

  #define(name: string, schema: JsonSchema, role: PythonRole): void {
    this.#classes.set(name, '');
    const json = this.#flat(schema) as Json;
    this.#classes.set(
      name,
      isObject(json)
        ? this.#classText(name, json, role)
        : `${name}: TypeAlias = ${pythonText(this.of(schema, name, { role, isRoot: true }))}`,
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

  #classText(name: string, json: Json, role: PythonRole): string {
    const required = new Set<string>(json.required ?? []);
    const members = Object.entries<Json>(json.properties).map(([key, schema]) => ({
      key,
      type: this.of(schema, `${name}${pascalCase(key)}`, { role }),
      isRequired: required.has(key),
      description: schema.description as string | undefined,
    }));
    // A member with the name of a type would hide it from the members below.
    const used = new Set(members.flatMap(({ type }) => type.match(/\w+/g) ?? []));
    if (role === 'model') return modelText(name, members, used, json.description);
    const dictionary = members.map(({ key, type, isRequired }) => [key, isRequired ? type : `NotRequired[${type}]`] as const);
    if (dictionary.some(([key]) => pythonName(key) !== key || used.has(key)))
      return `${name} = TypedDict(${pythonText(name)}, {${dictionary.map(([key, type]) => `${pythonText(key)}: ${pythonText(type)}`).join(', ')}})`;
    return `class ${name}(TypedDict):\n${dictionary.map(([key, type]) => `    ${key}: ${type}`).join('\n') || '    pass'}`;
  }

  of(
    schema: JsonSchema | boolean | undefined,
    place: string,
    { role, isRoot = false }: { readonly role: PythonRole; readonly isRoot?: boolean },
  ): string {
    if (schema === undefined || typeof schema === 'boolean') return 'Any';
    const json = schema as Json;
    if (typeof json.$ref === 'string') return this.#named(json.$ref.split('/').at(-1), role);
    if ('const' in json) return literals([json.const]);
    if (Array.isArray(json.enum)) return literals(json.enum);
    const alternatives = json.anyOf ?? json.oneOf;
    if (Array.isArray(alternatives))
      return union(alternatives.map((each: Json, index: number) => this.of(each, `${place}${index + 1}`, { role })));
    if (Array.isArray(json.allOf) || isObject(json)) return isRoot ? 'Any' : this.#class(place, json, role);
    const types: (string | undefined)[] = Array.isArray(json.type) ? json.type : [json.type];
    return union(types.map((type) => this.#ofType(type, json, place, role)));
  }

  #ofType(type: string | undefined, json: Json, place: string, role: PythonRole): string {
    if (type === 'string') return 'str';
    if (type === 'integer') return 'int';
    if (type === 'number') return 'float';
    if (type === 'boolean') return 'bool';
    if (type === 'null') return 'None';
    if (type === 'array') return `List[${this.#itemOf(json, place, role)}]`;
    if (type === 'object' && json.properties !== undefined && Object.keys(json.properties).length > 0)
      return this.#class(place, { ...json, type: 'object' }, role);
    if (type === 'object')
      return `dict[str, ${typeof json.additionalProperties === 'object' ? this.of(json.additionalProperties, `${place}Value`, { role }) : 'Any'}]`;
    return 'Any';
  }

  /** Positions of a list cannot have types of their own. */
  #itemOf({ items, prefixItems = [] }: Json, place: string, role: PythonRole): string {
    if (prefixItems.length === 0) return this.of(items, `${place}Item`, { role });
    const each: Json[] = typeof items === 'object' ? [...prefixItems, items] : prefixItems;
    return union(each.map((item, index) => this.of(item, `${place}Item${index + 1}`, { role })));
  }

  /** The same object in several places is one class. */
  #class(place: string, json: Json, role: PythonRole): string {
    const text = `${role} ${JSON.stringify(json)}`;
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    let name = this.#name(place);
    // Names of schemas that no operation has reached yet are taken, too.
    for (let count = 2; this.#classes.has(name) || name in this.#schemas; count += 1) name = `${this.#name(place)}${count}`;
    this.#byText.set(text, name);
    this.#define(name, json as JsonSchema, role);
    return name;
  }
}

interface Member {
  readonly key: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly description: string | undefined;
}

/** What a model has beside its members. */
const IN_MODELS: ReadonlySet<string> = new Set(['_sent', '_etag', '_names', '_members']);

function modelText(name: string, members: readonly Member[], used: ReadonlySet<string>, description: unknown): string {
  const names = pythonNames(
    members.map(({ key }) => key),
    new Set([...IN_MODELS, ...used]),
  );
  const renamed = members.flatMap(({ key }, index) => (names[index] === key ? [] : [`${pythonText(names[index]!)}: ${pythonText(key)}`]));
  const lines = [
    ...(typeof description === 'string' ? [pythonText(description.replaceAll(/\s+/g, ' ').trim()), ''] : []),
    ...(renamed.length === 0 ? [] : [`_names = {${renamed.join(', ')}}`]),
    ...members.map(({ type, isRequired }, index) => `${names[index]}: ${isRequired ? type : `${union([type, 'None'])} = None`}`),
  ];
  return `@dataclass(frozen=True, kw_only=True, eq=False, repr=False)\nclass ${name}(Model):\n${lines.map((line) => (line === '' ? '' : `    ${line}`)).join('\n')}`;
}

/** Names of the schemas that results consist of. */
function reached(schemas: Readonly<Record<string, JsonSchema>>, results: readonly JsonSchema[]): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (json: Json): void => {
    if (typeof json !== 'object' || json === null) return;
    const name = typeof json.$ref === 'string' ? json.$ref.split('/').at(-1) : undefined;
    if (name !== undefined && !names.has(name)) {
      names.add(name);
      visit(schemas[name]);
    }
    for (const each of Object.values(json)) visit(each);
  };
  results.forEach(visit);
  return names;
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
