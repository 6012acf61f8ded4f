import { sensitiveSchemaOf } from '../../db/declare/column-json.ts';
import type { Model } from '../../db/declare/model.ts';
import { marksSensitive, objectSchemas, withoutSensitive } from '../../db/declare/sensitive-members.ts';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import { schemaOfInput } from '../../http/compile/sensitive-inputs.ts';
import { isOwnRecord } from '../../observe/own-record.ts';
import { isPlainObject } from '../../options/value-rule.ts';

type JsonSchema = Readonly<Record<string, unknown>>;
type Part = 'params' | 'query' | 'headers' | 'cookies' | 'body';

/** An object of a schema that holds something sensitive, by what tells such an object from others: its members. */
interface Shape {
  readonly schema: JsonSchema;
  readonly members: ReadonlySet<string>;
  readonly required: readonly string[];
  /** One of the required members is not sensitive: an object with all of them is hardly another one. */
  readonly isDistinct: boolean;
  /** The part of the request that is this object as a whole. */
  readonly part: Part | undefined;
}

/** By the name of a member that is, or holds, something sensitive. */
export type SensitiveShapes = ReadonlyMap<string, readonly Shape[]>;

interface Declarations {
  readonly modules: readonly { readonly models?: readonly Pick<Model, 'columns'>[] | undefined }[];
  readonly routes: readonly Pick<CompiledRoute, Part>[];
}

const PARTS: readonly Part[] = ['params', 'query', 'headers', 'cookies', 'body'];

/** The rows of models and the inputs of routes that hold something sensitive. */
export function sensitiveShapesOf({ modules, routes }: Declarations): SensitiveShapes {
  const shapes = new Map<string, Shape[]>();
  const add = (schema: JsonSchema, part?: Part): void => {
    const properties = (schema['properties'] ?? {}) as Readonly<Record<string, JsonSchema>>;
    const sensitive = Object.keys(properties).filter((name) => marksSensitive(withDefinitions(schema, properties[name] as JsonSchema)));
    const required = Array.isArray(schema['required']) ? (schema['required'] as string[]) : [];
    const isDistinct = required.length > 1 && required.some((name) => !sensitive.includes(name));
    const shape: Shape = { schema, members: new Set(Object.keys(properties)), required, isDistinct, part };
    for (const name of sensitive) shapes.set(name, [...(shapes.get(name) ?? []), shape]);
  };
  for (const { columns } of modules.flatMap(({ models = [] }) => models)) {
    const row = rowSchema(columns);
    if (marksSensitive(row)) add(row);
  }
  const seen = new Set<string>();
  for (const route of routes) {
    for (const part of PARTS) {
      const schema = route[part]?.json;
      if (schema === undefined || !marksSensitive(schema)) continue;
      const text = `${part} ${JSON.stringify(schema)}`;
      if (seen.has(text)) continue;
      seen.add(text);
      for (const [index, each] of objectSchemas(schema).entries()) add(each, index === 0 ? part : undefined);
    }
  }
  return shapes;
}

/** The references of a member are resolved in the schema around it. */
function withDefinitions({ $defs, definitions }: JsonSchema, member: JsonSchema): JsonSchema {
  return JSON.stringify(member).includes('"$ref"') ? { ...member, $defs, definitions } : member;
}

function rowSchema(columns: Model['columns']): JsonSchema {
  const settings = Object.entries(columns).map(([name, column]) => [name, column.settings] as const);
  return {
    type: 'object',
    properties: Object.fromEntries(
      settings.map(([name, column]) => [name, column.sensitive ? { 'x-sensitive': true } : (sensitiveSchemaOf(column) ?? {})]),
    ),
    required: settings.filter(([, { nullable }]) => !nullable).map(([name]) => name),
  };
}

const MASK = '[masked]';
/** Deeper values are rare in a log, and may have no end. */
const DEPTH_MAX = 8;
/** Added to every record of a trace. */
const TRACE_MEMBERS: ReadonlySet<string> = new Set(['trace_id', 'span_id']);

/**
 * A log record that shows nothing of what a schema marks as sensitive, where it is in the schema: in an input or a row, whole or in part, at any
 * depth. A member elsewhere that only has such a name is shown: `code` of a problem is no one-time code.
 */
export function maskedRecord<R extends object>(record: R, shapes: SensitiveShapes): R {
  return shapes.size === 0 || isOwnRecord(record) ? record : (maskedValue(record, shapes, 0, undefined) as R);
}

function maskedValue(value: unknown, shapes: SensitiveShapes, depth: number, name: string | undefined): unknown {
  if (typeof value !== 'object' || value === null || depth > DEPTH_MAX) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => maskedValue(item, shapes, depth + 1, undefined));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  // Errors, dates and the like are for the logger's serializers.
  if (!isPlainObject(value)) return value;
  let shown: object = value;
  for (const schema of schemasOf(value, shapes, depth, name)) shown = withoutSensitive(schema, shown, MASK, DEPTH_MAX) as object;
  let copy: Record<string, unknown> | undefined;
  for (const [member, inside] of Object.entries(shown)) {
    const masked = maskedValue(inside, shapes, depth + 1, member);
    if (masked !== inside) (copy ??= { ...shown })[member] = masked;
  }
  return copy ?? shown;
}

function schemasOf(value: object, shapes: SensitiveShapes, depth: number, name: string | undefined): ReadonlySet<JsonSchema> {
  const input = schemaOfInput(value);
  if (input !== undefined) return new Set([input]);
  const found = new Set<JsonSchema>();
  for (const member of Object.keys(value))
    for (const shape of shapes.get(member) ?? []) if (isOf(shape, value, depth, name)) found.add(shape.schema);
  return found;
}

/** Whether a copy is of this shape: made for the log, with other members, or fewer. */
function isOf({ part, members, required, isDistinct }: Shape, value: object, depth: number, name: string | undefined): boolean {
  if (part !== undefined && part === name) return true;
  const hasRequired = required.every((each) => Object.hasOwn(value, each));
  if (hasRequired && isDistinct) return true;
  // Some members of such an object, and no others. One alone says too little, and so does a whole record, where something is missing.
  const own = Object.keys(value).filter((each) => !TRACE_MEMBERS.has(each));
  return own.length > 1 && (depth > 0 || hasRequired) && own.every((each) => members.has(each));
}
