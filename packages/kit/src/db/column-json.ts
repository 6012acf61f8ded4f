import type { ColumnSettings } from './column.ts';
import { isStandardSchema, type StandardSchema } from './standard-schema.ts';

const INT_MIN = -2_147_483_648;
const INT_MAX = 2_147_483_647;
const UUID_PATTERN = '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$';
const BASE64_PATTERN = '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$';

type JsonSchema = Record<string, unknown>;

/** The JSON Schema of a column's value on the wire. `direction` decides which half of a JSON column's own schema. */
export function columnJsonSchema(settings: ColumnSettings, direction: 'input' | 'output'): JsonSchema {
  const schema = annotated(valueSchema(settings, direction), settings, direction);
  return settings.nullable ? orNull(schema) : schema;
}

export function orNull(schema: JsonSchema): JsonSchema {
  if (Array.isArray(schema['enum'])) return { ...schema, type: ['string', 'null'], enum: [...(schema['enum'] as unknown[]), null] };
  if (typeof schema['type'] === 'string') return { ...schema, type: [schema['type'], 'null'] };
  return Object.keys(schema).length === 0 ? schema : { anyOf: [schema, { type: 'null' }] };
}

function annotated(schema: JsonSchema, settings: ColumnSettings, direction: 'input' | 'output'): JsonSchema {
  return {
    ...schema,
    ...(settings.description === undefined ? {} : { description: settings.description }),
    ...(settings.sensitive ? { writeOnly: true, 'x-sensitive': true } : {}),
    ...(direction === 'output' && settings.readOnly ? { readOnly: true } : {}),
    ...(direction === 'input' && settings.dbDefault !== undefined && 'value' in settings.dbDefault
      ? { default: plainDefault(settings) }
      : {}),
  };
}

function plainDefault({ kind, dbDefault }: ColumnSettings): unknown {
  if (dbDefault === undefined || !('value' in dbDefault)) return undefined;
  return kind === 'json' || kind === 'array' ? (JSON.parse(String(dbDefault.value)) as unknown) : dbDefault.value;
}

function valueSchema(settings: ColumnSettings, direction: 'input' | 'output'): JsonSchema {
  const { min, max, pattern, format, precision = 0, scale = 0, values = [], of, schema } = settings;
  switch (settings.kind) {
    case 'uuid':
      return { type: 'string', format: 'uuid', pattern: UUID_PATTERN };
    case 'text':
      return {
        type: 'string',
        ...(min === undefined ? {} : { minLength: min }),
        ...(max === undefined ? {} : { maxLength: max }),
        ...(pattern === undefined ? {} : { pattern }),
        ...(format === undefined ? {} : { format }),
      };
    case 'enum':
      return { type: 'string', enum: [...values] };
    case 'int':
      return { type: 'integer', minimum: min ?? INT_MIN, maximum: max ?? INT_MAX };
    case 'bigint':
      return { type: 'string', format: 'int64', pattern: '^-?(?:0|[1-9][0-9]{0,18})$' };
    case 'decimal':
      return { type: 'string', format: 'decimal', pattern: decimalPattern(precision, scale) };
    case 'float':
      return { type: 'number', ...(min === undefined ? {} : { minimum: min }), ...(max === undefined ? {} : { maximum: max }) };
    case 'bool':
      return { type: 'boolean' };
    case 'timestamp':
      return { type: 'string', format: 'date-time' };
    case 'date':
      return { type: 'string', format: 'date' };
    case 'bytes':
      return { type: 'string', contentEncoding: 'base64', pattern: BASE64_PATTERN };
    case 'array':
      return { type: 'array', items: of === undefined ? {} : valueSchema(of, direction) };
    case 'json':
      return jsonColumnSchema(schema ?? {}, direction);
  }
}

function decimalPattern(precision: number, scale: number): string {
  const whole = precision - scale === 0 ? '0' : `[0-9]{1,${precision - scale}}`;
  return `^-?${whole}${scale === 0 ? '' : `(?:\\.[0-9]{1,${scale}})?`}$`;
}

function jsonColumnSchema(schema: StandardSchema | Readonly<Record<string, unknown>>, direction: 'input' | 'output'): JsonSchema {
  if (!isStandardSchema(schema)) return { ...schema };
  const { $schema: _dialect, ...body } = schema['~standard'].jsonSchema?.[direction]({ target: 'draft-2020-12' }) ?? {};
  return body;
}

/** A checked JSON value as code holds it. */
export function fromJson(settings: ColumnSettings, value: unknown): unknown {
  if (value === null) return null;
  switch (settings.kind) {
    case 'timestamp':
      return new Date(String(value));
    case 'bigint':
      return BigInt(String(value));
    case 'bytes':
      return new Uint8Array(Buffer.from(String(value), 'base64'));
    case 'array':
      return (value as unknown[]).map((item) => (settings.of === undefined ? item : fromJson(settings.of, item)));
    default:
      return value;
  }
}

/** A value of code as JSON holds it. */
export function toJson(settings: ColumnSettings, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  switch (settings.kind) {
    case 'timestamp':
      return (value as Date).toISOString();
    case 'bigint':
      return String(value);
    case 'bytes':
      return Buffer.from(value as Uint8Array).toString('base64');
    case 'array':
      return (value as unknown[]).map((item) => (settings.of === undefined ? item : toJson(settings.of, item)));
    default:
      return value;
  }
}
