import { isMembers, isPlainObject } from '../../options/value-rule.ts';
/**
 * Members that a JSON Schema marks with `x-sensitive`, at any depth: `z.string().meta({ 'x-sensitive': true })` inside a body, a JSON column
 * or the input of a job. A member counts as sensitive when any branch of a union says so.
 */
type JsonSchema = Readonly<Record<string, unknown>>;
type Path = readonly (string | number)[];

/** Whether a schema marks anything at all. */
export function marksSensitive(schema: JsonSchema): boolean {
  return JSON.stringify(schema)?.includes('"x-sensitive":true') ?? false;
}

/** Whether the value at a path is sensitive, or lies inside something that is. */
export function isSensitiveAt(schema: JsonSchema, path: Path): boolean {
  let at = applicable([schema], schema);
  for (const step of path) {
    if (at.some(isMarked)) return true;
    at = applicable(below(at, step), schema);
  }
  return at.some(isMarked);
}

/** The names of all sensitive members. */
export function sensitiveNames(schema: JsonSchema): string[] {
  const names = new Set<string>();
  const visit = (at: unknown): void => {
    if (Array.isArray(at)) for (const each of at) visit(each);
    if (!isMembers(at)) return;
    const properties = at['properties'];
    if (isMembers(properties))
      for (const [name, member] of Object.entries(properties))
        if (isMembers(member) && applicable([member], schema).some(isMarked)) names.add(name);
    for (const member of Object.values(at)) visit(member);
  };
  visit(schema);
  return [...names];
}

/** Every schema of an object inside a schema, itself first, each with the definitions that its references name. */
export function objectSchemas(root: JsonSchema): JsonSchema[] {
  const { $defs, definitions } = root;
  const found: JsonSchema[] = [];
  const visit = (at: unknown): void => {
    if (Array.isArray(at)) for (const each of at) visit(each);
    if (!isMembers(at)) return;
    if (isMembers(at['properties'])) found.push(at === root ? root : { ...at, $defs, definitions });
    for (const member of Object.values(at)) visit(member);
  };
  visit(root);
  return found;
}

/**
 * A copy of a JSON value without its sensitive members; with `mask`, they have it as their value. Parts that the schema does not describe are
 * those of the value. `depthMax` is for values that may contain themselves: deeper ones are `mask`.
 */
export function withoutSensitive(schema: JsonSchema, value: unknown, mask?: string, depthMax = Infinity): unknown {
  return redacted(applicable([schema], schema), schema, value, mask, depthMax);
}

/** Visits the objects of a JSON value whose members may be sensitive, each with its schema. */
export function visitSensitive(schema: JsonSchema, value: unknown, visit: (part: object, schema: JsonSchema) => void): void {
  const { $defs, definitions } = schema;
  const walk = (schemas: readonly JsonSchema[], at: unknown): void => {
    if (typeof at !== 'object' || at === null || schemas.length === 0 || !isPlain(at)) return;
    visit(at, { anyOf: schemas, $defs, definitions });
    const isList = Array.isArray(at);
    for (const [step, member] of Object.entries(at))
      if (typeof member === 'object') walk(applicable(below(schemas, isList ? Number(step) : step), schema), member);
  };
  walk(applicable([schema], schema), value);
}

/** A schema of what `withoutSensitive` leaves. */
export function schemaWithoutSensitive(schema: JsonSchema): JsonSchema {
  return marksSensitive(schema) ? (stripped(schema, schema) as JsonSchema) : schema;
}

/** Shorter values occur in sentences by chance. */
const TEXT_MIN = 4;

/** A sentence about a value in which the sensitive texts and numbers of that value do not appear. */
export function maskedSentence(schema: JsonSchema, value: unknown, sentence: string, mask: string): string {
  const texts: string[] = [];
  collect(applicable([schema], schema), schema, value, false, texts);
  return texts
    .filter((text) => text.length >= TEXT_MIN)
    .toSorted((a, b) => b.length - a.length)
    .reduce((masked, text) => masked.replaceAll(text, mask), sentence);
}

function collect(schemas: readonly JsonSchema[], root: JsonSchema, value: unknown, isInside: boolean, texts: string[]): void {
  const isSensitive = isInside || schemas.some(isMarked);
  if (typeof value === 'object' && value !== null) {
    for (const [step, member] of Object.entries(value))
      collect(applicable(below(schemas, Array.isArray(value) ? Number(step) : step), root), root, member, isSensitive, texts);
  } else if (isSensitive && (typeof value === 'string' || typeof value === 'number')) texts.push(String(value));
}

function redacted(schemas: readonly JsonSchema[], root: JsonSchema, value: unknown, mask: string | undefined, depth: number): unknown {
  if (typeof value !== 'object' || value === null || schemas.length === 0 || !isPlain(value)) return value;
  if (depth < 0) return mask;
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (const [index, item] of value.entries()) {
      const at = applicable(below(schemas, index), root);
      if (!at.some(isMarked)) items.push(redacted(at, root, item, mask, depth - 1));
      else if (mask !== undefined) items.push(mask);
    }
    return items;
  }
  const copy: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    const at = applicable(below(schemas, name), root);
    const isSensitive = at.some(isMarked);
    if (isSensitive && mask === undefined) continue;
    const shown = isSensitive && member !== null && member !== undefined ? mask : redacted(at, root, member, mask, depth - 1);
    // Assigning __proto__ would set the prototype; defined, it stays a member.
    Object.defineProperty(copy, name, { value: shown, enumerable: true, writable: true, configurable: true });
  }
  return copy;
}

function stripped(at: unknown, root: JsonSchema): unknown {
  if (Array.isArray(at)) return at.map((each) => stripped(each, root));
  if (!isMembers(at)) return at;
  const copy = Object.fromEntries(Object.entries(at).map(([name, member]) => [name, stripped(member, root)]));
  const { properties, required } = at;
  if (!isMembers(properties)) return copy;
  const isGone = (name: string) => {
    const member = properties[name];
    return isMembers(member) && applicable([member], root).some(isMarked);
  };
  const kept = Object.entries(copy['properties'] as JsonSchema).filter(([name]) => !isGone(name));
  return {
    ...copy,
    properties: Object.fromEntries(kept),
    ...(Array.isArray(required) ? { required: required.filter((name) => !isGone(String(name))) } : {}),
  };
}

/** The schemas that say something about a value: references followed, every branch of a union taken. */
function applicable(given: readonly JsonSchema[], root: JsonSchema): JsonSchema[] {
  const found = new Set<JsonSchema>();
  const add = (schema: unknown): void => {
    if (!isMembers(schema) || found.has(schema)) return;
    found.add(schema);
    if (typeof schema['$ref'] === 'string') add(resolved(schema['$ref'], root));
    for (const keyword of ['allOf', 'anyOf', 'oneOf'])
      if (Array.isArray(schema[keyword])) for (const branch of schema[keyword] as unknown[]) add(branch);
    for (const keyword of ['if', 'then', 'else']) add(schema[keyword]);
  };
  for (const schema of given) add(schema);
  return [...found];
}

function below(schemas: readonly JsonSchema[], step: string | number): JsonSchema[] {
  return schemas.flatMap((schema) => {
    const { properties, patternProperties, additionalProperties, prefixItems, items } = schema;
    const name = String(step);
    const candidates: unknown[] = [];
    if (isMembers(properties) && Object.hasOwn(properties, name)) candidates.push(properties[name]);
    else candidates.push(additionalProperties);
    if (isMembers(patternProperties)) candidates.push(...Object.values(patternProperties));
    if (typeof step === 'number' || /^\d+$/.test(name))
      candidates.push(Array.isArray(prefixItems) ? prefixItems[Number(step)] : undefined, items);
    return candidates.filter(isMembers);
  });
}

function resolved(reference: string, root: JsonSchema): unknown {
  if (!reference.startsWith('#')) return undefined;
  return reference
    .split('/')
    .slice(1)
    .reduce<unknown>((at, step) => (isMembers(at) ? at[step.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined), root);
}

function isMarked(schema: JsonSchema): boolean {
  return schema['x-sensitive'] === true;
}

/** What JSON has; a date or a list of bytes is a value of its own. */
function isPlain(value: object): boolean {
  return Array.isArray(value) || isPlainObject(value);
}
