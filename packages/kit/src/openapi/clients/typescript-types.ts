import { readFileSync } from 'node:fs';
import type { JsonSchema } from '../../http/declare/schema.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- a JSON Schema
type Json = any;

const RUNTIME_PARTS = ['runtime', 'pages', 'numbered-pages', 'events', 'streams', 'live', 'transfer', 'uploads'] as const;
type RuntimePart = (typeof RUNTIME_PARTS)[number] | 'tanstack';

/** A part of the client that is the same for every API. */
export function runtimePart(name: RuntimePart): string {
  return readFileSync(new URL(`typescript-${name}.txt`, import.meta.url), 'utf8').trimEnd();
}

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;

/** Types that the generated text names; those of the runtime are read from it. */
const TYPES =
  'Arguments AsyncGenerator At Below Client Date Dates Each Error Exclude Expanded Extract FieldError FieldOf Inner Named Narrowed NonNullable Omit Partial Pick PropertyKey Problem Promise Readonly Record Required Related Response Shaped StreamEvent';
const WORDS =
  'any arguments as async await bigint boolean break case catch class const continue debugger default delete do else enum eval export extends false finally for function if implements import in instanceof interface keyof let never new null number object package private protected public readonly return static string super switch symbol this throw true try type typeof undefined unknown var void while with yield';
/** What functions of the generated text use beside the runtime. */
const VALUES =
  'args btoa call clearTimeout connection createClient crypto decodeURIComponent encodeURIComponent fetch globalThis options revive reviveMembers setTimeout';

const withoutComments = (text: string): string => text.replaceAll(/\/\*\*.*?\*\/|^\s*\/\/[^\n]*$/gms, '').replaceAll(/'[^'\n]*'/g, '');

let reserved: { readonly types: ReadonlySet<string>; readonly values: ReadonlySet<string> } | undefined;

/** Names that the API must not take. */
function reservedNames(): NonNullable<typeof reserved> {
  if (reserved !== undefined) return reserved;
  const runtime = RUNTIME_PARTS.map((part) => withoutComments(runtimePart(part))).join('\n');
  const declared = [...runtime.matchAll(/^(?:export )?(?:async )?(?:function\*?|const|class) (\w+)/gm)].map(([, name = '']) => name);
  const types = new Set([...`${TYPES} ${WORDS}`.split(' '), ...(runtime.match(/\b[A-Z]\w*/g) ?? [])]);
  return (reserved = { types, values: new Set([...`${VALUES} ${WORDS}`.split(' '), ...declared]) });
}

export function schemaName(name: string): string {
  const plain = name.replaceAll(/\W/g, '_').replace(/^(?=\d)/, '_');
  return reservedNames().types.has(plain) ? `${plain}Schema` : plain;
}

/** The function of an operation: no word of the language, and none of the runtime. */
export function functionName(typeName: string): string {
  const plain = typeName.charAt(0).toLowerCase() + typeName.slice(1);
  return reservedNames().values.has(plain) ? `${plain}Call` : plain;
}

/** A text of the API as a comment: nothing in it can end the comment. */
export function comment(text: string | undefined, indent = '', deprecation?: string): string {
  if (text === undefined || text.trim() === '') return deprecation === undefined ? '' : `${indent}/** @deprecated ${deprecation} */\n`;
  const safe = text
    .replaceAll('*/', '*\\/')
    .replaceAll('</', '<\\/')
    .replaceAll(/[\r\n\u2028\u2029]+/g, ' ')
    .trim();
  if (deprecation === undefined) return `${indent}/** ${safe} */\n`;
  // Editors strike through what has the tag, at the beginning of a line.
  return `${indent}/**\n${indent} * ${safe}\n${indent} * @deprecated ${deprecation}\n${indent} */\n`;
}

/** A string of the API as a literal; line separators and what could end a script element are escaped. */
export function literal(value: unknown): string {
  return JSON.stringify(value)
    .replaceAll('<', String.raw`\u003c`)
    .replaceAll('\u2028', String.raw`\u2028`)
    .replaceAll('\u2029', String.raw`\u2029`);
}

export const propertyName = (name: string): string => (IDENTIFIER.test(name) ? name : literal(name));

/** The format of a text that the client turns into a `Date`. */
export const DATE_FORMAT = 'x-date';

/** The type of a schema. References are names of the same file. */
export function typeOf(schema: JsonSchema | boolean | undefined, indent = ''): string {
  if (schema === undefined || typeof schema === 'boolean') return schema === false ? 'never' : 'unknown';
  const json = schema as Json;
  if (typeof json.$ref === 'string') return schemaName(json.$ref.split('/').at(-1));
  if ('const' in json) return literal(json.const);
  if (Array.isArray(json.enum)) return union(json.enum.map(literal));
  const alternatives = json.anyOf ?? json.oneOf;
  if (Array.isArray(alternatives)) {
    const { anyOf: _a, oneOf: _o, ...beside } = json;
    const choice = union(alternatives.map((each: Json) => typeOf(each, indent)));
    return beside.properties === undefined && beside.allOf === undefined ? choice : `${typeOf(beside, indent)} & (${choice})`;
  }
  if (Array.isArray(json.allOf)) {
    const { allOf, ...beside } = json;
    const parts = allOf.filter(
      (each: Json) => each.$ref !== undefined || each.properties !== undefined || each.anyOf !== undefined || each.allOf !== undefined,
    );
    const needed: string[] = allOf.filter((each: Json) => !parts.includes(each)).flatMap((each: Json) => each.required ?? []);
    const own = beside.properties === undefined ? [] : [typeOf(beside, indent)];
    const whole = [...own, ...parts.map((each: Json) => grouped(typeOf(each, indent)))].join(' & ') || 'unknown';
    return needed.length === 0 ? whole : `${whole} & Required<Pick<${whole}, ${union(needed.map(literal))}>>`;
  }
  const types: (string | undefined)[] = Array.isArray(json.type) ? json.type : [json.type];
  return union(types.map((type) => ofType(type, json, indent)));
}

function ofType(type: string | undefined, json: Json, indent: string): string {
  if (type === 'string') return json.format === 'binary' ? 'Blob' : json.format === DATE_FORMAT ? 'Date' : 'string';
  if (type === 'integer' || type === 'number') return 'number';
  if (type === 'boolean' || type === 'null') return type;
  if (type === 'array' || (type === undefined && json.items !== undefined)) return arrayOf(json, indent);
  if (type === 'object' || json.properties !== undefined || json.additionalProperties !== undefined) return objectOf(json, indent);
  return 'unknown';
}

function arrayOf(json: Json, indent: string): string {
  if (Array.isArray(json.prefixItems)) {
    const rest = json.items === false || json.items === undefined ? '' : `, ...${grouped(typeOf(json.items, indent))}[]`;
    return `readonly [${json.prefixItems.map((each: Json) => typeOf(each, indent)).join(', ')}${rest}]`;
  }
  return `readonly ${grouped(typeOf(json.items, indent))}[]`;
}

function objectOf(json: Json, indent: string): string {
  const required = new Set<string>(json.required ?? []);
  const inner = `${indent}  `;
  const members = Object.entries<Json>(json.properties ?? {}).map(
    ([name, schema]) =>
      `${comment(schema.description, inner)}${inner}readonly ${propertyName(name)}${required.has(name) ? '' : '?'}: ${typeOf(schema, inner)};`,
  );
  const open = json.additionalProperties;
  if (members.length === 0) {
    if (typeof open === 'object' && Object.keys(open).length > 0) return `{ readonly [name: string]: ${typeOf(open, indent)} }`;
    return open === false ? 'Readonly<Record<string, never>>' : 'Readonly<Record<string, unknown>>';
  }
  return `{\n${members.join('\n')}\n${indent}}`;
}

/** In parentheses where an operator would bind differently beside it. */
function grouped(type: string): string {
  // Members of an object and texts stand between brackets of their own.
  const outside = type.replaceAll(/\/\*\*.*?\*\/|"(?:[^"\\]|\\.)*"/gs, '');
  let depth = 0;
  for (const character of outside) {
    if ('{(<['.includes(character)) depth += 1;
    else if ('})>]'.includes(character)) depth -= 1;
    else if (depth === 0 && '|&'.includes(character)) return `(${type})`;
  }
  return type.startsWith('readonly ') ? `(${type})` : type;
}

export const union = (types: readonly string[]): string => {
  const each = [...new Set(types)];
  if (each.includes('unknown')) return 'unknown';
  return each.length === 0 ? 'never' : each.join(' | ');
};
