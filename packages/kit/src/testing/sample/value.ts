import { dereference, mergeSchemas, type JsonSchema, type Schema } from './json-schema.ts';
import { sampleNumber, type NumberConstraints } from './number.ts';
import type { Random } from './random.ts';
import { sampleText, type TextConstraints } from './text.ts';

export interface Drawing {
  readonly root: Schema;
  readonly random: Random;
  /** Whether properties that may be left out are given. */
  readonly optional: 'all' | 'none' | 'some';
}

/** Beyond this depth only what is required is drawn, so a schema that contains itself ends. */
const DEPTH_FULL = 4;
const DEPTH_MAX = 40;

const SCALARS = new Set(['null', 'boolean', 'integer', 'number', 'string']);

/** The type that the keywords of a schema imply when it names none. */
function impliedType(schema: JsonSchema): string {
  const has = (...keywords: string[]): boolean => keywords.some((keyword) => keyword in schema);
  if (has('properties', 'required', 'additionalProperties', 'patternProperties', 'minProperties', 'propertyNames')) return 'object';
  if (has('items', 'prefixItems', 'minItems', 'maxItems', 'contains', 'uniqueItems')) return 'array';
  if (has('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf')) return 'number';
  return 'string';
}

function chooseType(schema: JsonSchema, drawing: Drawing): string {
  if (schema.type === undefined) return impliedType(schema);
  const types = [schema.type].flat();
  if (types.length === 0) throw new Error('The schema asks for types that exclude one another.');
  const telling = types.filter((type) => type !== 'null');
  return telling.length > 0 && !drawing.random.chance(0.1) ? drawing.random.pick(telling) : drawing.random.pick(types);
}

/** Resolves references, allOf and one branch of each choice, until plain keywords are left. */
function settle(schema: Schema, drawing: Drawing, depth: number): JsonSchema {
  let current: Schema = schema;
  for (let round = 0; round < 64; round += 1) {
    if (current === true) return { type: drawing.random.pick(['string', 'integer', 'boolean']) };
    if (current === false) throw new Error('The schema allows no value here.');
    const { $ref, allOf, anyOf, oneOf, ...rest } = current;
    if ($ref !== undefined) current = mergeSchemas([rest, dereference(drawing.root, $ref), pickOut({ allOf, anyOf, oneOf })]);
    else if (allOf !== undefined) current = mergeSchemas([pickOut({ ...rest, anyOf, oneOf }), ...allOf]);
    else if (anyOf !== undefined) current = mergeSchemas([pickOut({ ...rest, oneOf }), branch(anyOf, drawing, depth)]);
    else if (oneOf !== undefined) current = mergeSchemas([rest, branch(oneOf, drawing, depth)]);
    else return conditioned(current, drawing);
  }
  throw new Error('The schema refers to itself without an end.');
}

const pickOut = (schema: Readonly<Record<string, unknown>>): JsonSchema =>
  Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined));

/** Deep inside a schema that contains itself the simplest branch ends the recursion. */
function branch(schemas: readonly Schema[], drawing: Drawing, depth: number): Schema {
  if (depth < DEPTH_FULL) return drawing.random.pick(schemas);
  const simple = schemas.filter(
    (schema) =>
      typeof schema === 'object' &&
      (schema.enum !== undefined || 'const' in schema || [schema.type].flat().some((type) => SCALARS.has(type ?? ''))),
  );
  return drawing.random.pick(simple.length > 0 ? simple : schemas);
}

/** `if` holds for whatever the drawn branch says: take then with the condition added, or else without it; checked at the end. */
function conditioned(schema: JsonSchema, drawing: Drawing): JsonSchema {
  if (!('if' in schema)) return schema;
  const { if: condition, then: consequence = true, else: alternative = true, ...rest } = schema;
  const merged = drawing.random.chance(0.5)
    ? mergeSchemas([rest, condition as Schema, consequence as Schema])
    : mergeSchemas([rest, alternative as Schema]);
  return settle(merged, drawing, 0);
}

export function drawValue(schema: Schema, drawing: Drawing, depth = 0): unknown {
  if (depth > DEPTH_MAX) throw new Error('The schema requires itself without an end, so no value of it is finite.');
  const settled = settle(schema, drawing, depth);
  if ('const' in settled) return structuredClone(settled['const']);
  if (settled.enum !== undefined) {
    const allowed =
      settled.type === undefined
        ? settled.enum
        : settled.enum.filter((value) => [settled.type].flat().includes(typeOf(value)) || typeof value === 'number');
    return structuredClone(drawing.random.pick(allowed));
  }
  switch (chooseType(settled, drawing)) {
    case 'null':
      return null;
    case 'boolean':
      return drawing.random.chance(0.5);
    case 'integer':
      return sampleNumber(settled as NumberConstraints, true, drawing.random);
    case 'number':
      return sampleNumber(settled as NumberConstraints, false, drawing.random);
    case 'array':
      return drawArray(settled, drawing, depth);
    case 'object':
      return drawObject(settled, drawing, depth);
    default:
      return sampleText(settled as TextConstraints, drawing.random);
  }
}

const typeOf = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);

interface ArrayKeywords {
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly contains?: Schema;
  readonly minContains?: number;
}

function drawArray(schema: JsonSchema, drawing: Drawing, depth: number): unknown[] {
  const { minItems = 0, maxItems = Infinity, uniqueItems = false, contains, minContains = 1 } = schema as ArrayKeywords;
  const prefix = schema.prefixItems ?? [];
  const rest = schema.items ?? true;
  const wanted =
    depth >= DEPTH_FULL || drawing.optional === 'none' ? minItems : Math.max(minItems, prefix.length, drawing.random.int(1, 2));
  const length = Math.min(rest === false ? Math.max(prefix.length, minItems) : wanted, maxItems);
  const values: unknown[] = [];
  const seen = new Set<string>();
  // A small domain (an enum) may not have enough different values for the wanted length: stop there, the least is checked at the end.
  for (let attempt = 0; values.length < length && attempt < length * 20 + 20; attempt += 1) {
    const index = values.length;
    const item = prefix[index] ?? (contains !== undefined && index < prefix.length + minContains ? mergeSchemas([rest, contains]) : rest);
    const value = drawValue(item, drawing, depth + 1);
    const text = JSON.stringify(value);
    if (uniqueItems && seen.has(text)) continue;
    seen.add(text);
    values.push(value);
  }
  return values;
}

interface ObjectKeywords {
  readonly additionalProperties?: Schema;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly propertyNames?: Schema;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly dependentRequired?: Readonly<Record<string, readonly string[]>>;
  readonly dependentSchemas?: Readonly<Record<string, Schema>>;
}

/** The schema of a property that `properties` may not name: patterns first, then what is said of all others. */
function schemaOf(name: string, schema: JsonSchema): Schema {
  const { patternProperties = {}, additionalProperties = true } = schema as ObjectKeywords;
  const own = schema.properties !== undefined && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
  const matched = Object.entries(patternProperties).flatMap(([pattern, value]) => (new RegExp(pattern, 'u').test(name) ? [value] : []));
  if (own === undefined && matched.length === 0) return additionalProperties;
  return mergeSchemas([...(own === undefined ? [] : [own]), ...matched]);
}

function drawObject(schema: JsonSchema, drawing: Drawing, depth: number): Record<string, unknown> {
  const keywords = schema as ObjectKeywords;
  const { minProperties = 0, maxProperties = Infinity } = keywords;
  const names = new Set(schema.required ?? []);
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const wanted = depth < DEPTH_FULL && (drawing.optional === 'all' || (drawing.optional === 'some' && drawing.random.chance(0.5)));
    if (property !== false && wanted && names.size < maxProperties) names.add(name);
  }
  let current = schema;
  for (const name of names) {
    for (const needed of keywords.dependentRequired?.[name] ?? []) names.add(needed);
    const dependent = keywords.dependentSchemas?.[name];
    if (dependent === undefined) continue;
    current = settle(mergeSchemas([current, dependent]), drawing, depth);
    for (const needed of current.required ?? []) names.add(needed);
  }
  for (const name of Object.keys(schema.properties ?? {})) if (names.size < minProperties) names.add(name);
  for (let attempt = 0; names.size < minProperties && attempt < minProperties * 20; attempt += 1) names.add(extraName(current, drawing));
  const result: Record<string, unknown> = {};
  for (const name of names)
    Object.defineProperty(result, name, {
      value: drawValue(schemaOf(name, current), drawing, depth + 1),
      enumerable: true,
      writable: true,
      configurable: true,
    });
  return result;
}

function extraName(schema: JsonSchema, drawing: Drawing): string {
  const { patternProperties = {}, propertyNames = {}, additionalProperties = true } = schema as ObjectKeywords;
  const patterns = Object.keys(patternProperties);
  const named =
    patterns.length > 0 && (additionalProperties === false || drawing.random.chance(0.5)) ? { pattern: drawing.random.pick(patterns) } : {};
  return String(drawValue(mergeSchemas([{ type: 'string', minLength: 3 }, propertyNames, named]), drawing, DEPTH_FULL));
}
