import { dateJson } from '../../db/values/timestamp.ts';
import type { JsonSchema } from '../declare/schema.ts';
import { isMembers } from '../../options/value-rule.ts';
import {
  alternativesOf,
  discriminatorOf,
  flattened,
  isArrayNode,
  isLoose,
  isNode,
  isObjectNode,
  nodes,
  propertiesOf,
} from './schema-node.ts';

/** Turns what a handler returned into the JSON text the response schema promises. */
export type Serializer = (value: unknown) => string;

/**
 * Only declared members leave: a row with a password hash behind a schema without one cannot leak it.
 * The projection is generated source with explicit members, compiled once: object literals plus JSON.stringify beat
 * fast-json-stringify 2:1 on pages here, and a loop over names is three times slower than a literal.
 */
export function compileSerializer(root: JsonSchema): Serializer {
  const project = compileProjection(root);
  return (value) => {
    const projected = project(value);
    try {
      return JSON.stringify(projected) ?? 'null';
    } catch (error) {
      // A bigint inside a part the schema leaves open.
      if (!(error instanceof TypeError)) throw error;
      return JSON.stringify(projected, (_, each: unknown) => (typeof each === 'bigint' ? each.toString() : each)) ?? 'null';
    }
  };
}

type Projection = (value: unknown) => unknown;

export function compileProjection(root: JsonSchema): Projection {
  const names = new Map<string, string>();
  const numbers = new Map<JsonSchema, number>();
  const functions: string[] = [];

  /** An expression that projects `input`; just `input` when the schema leaves the value open. */
  function expression(raw: JsonSchema, input: string): string {
    const schema = flattened(raw, root);
    if (isStructured(schema)) return `${functionFor(schema)}(${input})`;
    if (!isScalar(schema)) return input;
    return isPlainText(schema) ? `leaf(${input})` : `(typeof ${input}==='object'?leaf(${input}):${input})`;
  }

  function isStructured(schema: JsonSchema): boolean {
    if (alternativesOf(schema, root).length > 0) return true;
    if (isObjectNode(schema)) return !isLoose(schema) || isNode(schema['additionalProperties']);
    return isArrayNode(schema);
  }

  function functionFor(schema: JsonSchema): string {
    const alternatives = [...leavesOf(schema)];
    // A union is known by its alternatives: merging those of a recursive schema makes the same union again in another node.
    const key =
      alternatives.length === 0
        ? `${numberOf(schema)}`
        : `or ${alternatives
            .map(numberOf)
            .sort((a, b) => a - b)
            .join()}`;
    const known = names.get(key);
    if (known !== undefined) return known;
    const name = `f${names.size}`;
    names.set(key, name);
    functions.push(`function ${name}(v){${alternatives.length > 0 ? unionBody(alternatives) : body(schema)}}`);
    return name;
  }

  function numberOf(schema: JsonSchema): number {
    const known = numbers.get(schema) ?? numbers.size;
    numbers.set(schema, known);
    return known;
  }

  function body(schema: JsonSchema): string {
    return isObjectNode(schema) ? objectBody(schema) : arrayBody(schema);
  }

  function objectBody(schema: JsonSchema): string {
    if (isLoose(schema)) {
      const members = propertiesOf(schema);
      const extra = schema['additionalProperties'];
      const rest = isNode(extra) ? expression(extra, 'v[k]') : 'v[k]';
      const cases = members.map(([name, node]) => `case ${JSON.stringify(name)}:o[k]=${expression(node, 'v[k]')};break;`).join('');
      return `if(!record(v))return leaf(v);const o={};for(const k of Object.keys(v)){switch(k){${cases}default:o[k]=${rest};}}return o;`;
    }
    return `if(!record(v))return leaf(v);return{${members(schema, () => true)}};`;
  }

  function members(schema: JsonSchema, wanted: (name: string) => boolean): string {
    return propertiesOf(schema)
      .filter(([name]) => wanted(name))
      .map(([name, node]) => `${JSON.stringify(name)}:${expression(node, `v[${JSON.stringify(name)}]`)}`)
      .join(',');
  }

  function arrayBody(schema: JsonSchema): string {
    const prefix = nodes(schema['prefixItems']).map((node) => `(v)=>${expression(node, 'v')}`);
    const item = isNode(schema['items']) ? expression(schema['items'], 'v[i]') : 'v[i]';
    const first = prefix.length === 0 ? '' : `const p=[${prefix.join(',')}];`;
    const each = prefix.length === 0 ? item : `i<p.length?p[i](v[i]):${item}`;
    return `if(!Array.isArray(v))return leaf(v);${first}const o=new Array(v.length);for(let i=0;i<v.length;i++)o[i]=${each};return o;`;
  }

  /** A discriminator chooses the alternative; without one, every alternative's members may leave. */
  function unionBody(alternatives: readonly JsonSchema[]): string {
    if (alternatives.some(isOpen)) return 'return v;';
    const arrays = alternatives.filter(isArrayNode);
    const objects = alternatives.filter((each) => !isArrayNode(each) && isObjectNode(each));
    const arrayPart = arrays.length === 0 ? '' : `if(Array.isArray(v))return ${expression(anyArray(arrays), 'v')};`;
    return `${arrayPart}if(!record(v))return leaf(v);${objectUnion(objects)}`;
  }

  /** The alternatives of a union and of the unions among them. */
  function leavesOf(schema: JsonSchema, seen = new Set<JsonSchema>()): Set<JsonSchema> {
    for (const each of alternativesOf(schema, root).map((raw) => flattened(raw, root))) {
      if (seen.has(each)) continue;
      seen.add(each);
      leavesOf(each, seen);
    }
    return new Set([...seen].filter((each) => alternativesOf(each, root).length === 0));
  }

  /** Nothing in a list tells which alternative it is: its items may have the declared members of all of them. */
  function anyArray(arrays: readonly JsonSchema[]): JsonSchema {
    if (arrays.length === 1) return arrays[0] as JsonSchema;
    const items = arrays.flatMap((each) => {
      const own = [...nodes(each['prefixItems']), ...nodes([each['items']])];
      return own.length > 0 ? own : [{}];
    });
    return { type: 'array', items: { anyOf: items } };
  }

  function objectUnion(objects: readonly JsonSchema[]): string {
    if (objects.length === 0) return 'return leaf(v);';
    if (objects.length === 1) return `return ${expression(objects[0] as JsonSchema, 'v')};`;
    const merged: JsonSchema = { type: 'object', properties: mergedProperties(objects) };
    const otherwise = objects.some(isLoose) ? 'return v;' : `return ${functionFor(merged)}(v);`;
    const discriminator = discriminatorOf(objects);
    if (discriminator === undefined) return otherwise;
    const cases = objects.map((each, index) => {
      const labels = (discriminator.values[index] ?? []).map((value) => `case ${JSON.stringify(value)}:`).join('');
      return `${labels}return ${expression(each, 'v')};`;
    });
    return `switch(v[${JSON.stringify(discriminator.name)}]){${cases.join('')}}${otherwise}`;
  }

  const start = expression(root, 'v');
  // oxlint-disable-next-line typescript/no-implied-eval, no-new-func -- the source holds only our own text and quoted member names
  const build = new Function('record', 'leaf', `${functions.join('')}return (v)=>${start};`) as (
    record: (value: unknown) => boolean,
    leaf: Projection,
  ) => Projection;
  return build(isRecord, leafOf);
}

/** A member that several alternatives declare is what any of them says. */
function mergedProperties(objects: readonly JsonSchema[]): Record<string, JsonSchema> {
  const declared = objects.flatMap(propertiesOf);
  const byName = Map.groupBy(declared, ([name]) => name);
  return Object.fromEntries(
    [...byName].map(([name, nodes]) => [name, nodes.length === 1 ? nodes[0]![1] : { anyOf: nodes.map(([, node]) => node) }]),
  );
}

/** Text that may arrive as bigint or bytes; formats that cannot are left to JSON.stringify. */
function isPlainText(schema: JsonSchema): boolean {
  const { type, format } = schema;
  const isText = type === 'string' || (Array.isArray(type) && type.includes('string'));
  return isText && schema['enum'] === undefined && schema['const'] === undefined && !fixedFormats.has(format as string);
}

const fixedFormats: ReadonlySet<string> = new Set(['date-time', 'date', 'uuid', 'email', 'uri', 'time', 'ipv4', 'ipv6']);

function isRecord(value: unknown): boolean {
  return isMembers(value) && typeof value['toJSON'] !== 'function';
}

/** Whether the schema says nothing about the value. */
function isOpen(schema: JsonSchema): boolean {
  return !constraints.some((name) => name in schema);
}

const constraints = [
  'type',
  'enum',
  'const',
  'properties',
  'items',
  'prefixItems',
  'additionalProperties',
  'anyOf',
  'oneOf',
  'not',
  '$ref',
];

/** Whether the value has no members, by its schema. */
function isScalar({ type, enum: values, const: constant }: JsonSchema): boolean {
  if (type !== undefined) return [type].flat().every((each) => each !== 'object' && each !== 'array');
  const known: unknown[] = Array.isArray(values) ? values : [constant];
  return known.every((each) => each !== undefined && (typeof each !== 'object' || each === null));
}

/**
 * A value where none with members is declared: plain values pass, anything with members inside does not. What turns itself into a plain
 * value passes as that: dates, URLs, decimals of a library.
 */
function leafOf(value: unknown): unknown {
  if (typeof value === 'string') return value;
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Date && value.toJSON === Date.prototype.toJSON) return dateJson(value);
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON !== 'function') return undefined;
  const plain: unknown = Reflect.apply(toJSON, value, []);
  return typeof plain === 'object' && plain !== null ? undefined : plain;
}
