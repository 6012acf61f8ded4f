import type { ColumnSettings } from './column.ts';
import { decimalForm } from '../values/decimal.ts';
import { explained } from '../values/pattern-sentence.ts';
import { marksSensitive, schemaWithoutSensitive } from './sensitive-members.ts';
import { asDefinition } from '../values/root-definitions.ts';
import { isSchema, type Schema } from '../values/standard-schema.ts';
import type { ColumnKind } from './table-definition.ts';
import { timestampText } from '../values/timestamp.ts';
import { UUID_PATTERN } from '../values/uuid.ts';

const INT_MIN = -2_147_483_648;
const INT_MAX = 2_147_483_647;
const BASE64_PATTERN = explained(
  '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$',
  'must be base64 with padding, such as "aGVsbG8="',
);
const BIGINT_PATTERN = explained('^-?(?:0|[1-9][0-9]{0,18})$', 'must be an integer as a string, such as "42"');

type JsonSchema = Record<string, unknown>;
type Direction = 'input' | 'output';

/** The JSON Schema of a column's value on the wire. `direction` decides which half of a JSON column's own schema. */
export function columnJsonSchema(settings: ColumnSettings, direction: Direction): JsonSchema {
  const schema = annotated(schemas[settings.kind](settings, direction), settings, direction);
  return settings.nullable ? orNull(schema) : schema;
}

export function orNull(schema: JsonSchema): JsonSchema {
  if (Array.isArray(schema['enum'])) return { ...schema, type: ['string', 'null'], enum: [...(schema['enum'] as unknown[]), null] };
  if (typeof schema['type'] === 'string') return { ...schema, type: [schema['type'], 'null'] };
  return Object.keys(schema).length === 0 ? schema : { anyOf: [schema, { type: 'null' }] };
}

function annotated(schema: JsonSchema, settings: ColumnSettings, direction: Direction): JsonSchema {
  return {
    ...schema,
    ...(settings.description === undefined ? {} : { description: settings.description }),
    // A resource may show an encrypted column.
    ...(settings.sensitive ? { ...(settings.encrypted === undefined ? { writeOnly: true } : {}), 'x-sensitive': true } : {}),
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

const schemas: Readonly<Record<ColumnKind, (settings: ColumnSettings, direction: Direction) => JsonSchema>> = {
  uuid: () => ({ type: 'string', format: 'uuid', pattern: UUID_PATTERN }),
  text: ({ min, max, pattern, format }) => ({ type: 'string', ...given({ minLength: min, maxLength: max, pattern, format }) }),
  enum: ({ values = [] }) => ({ type: 'string', enum: [...values] }),
  int: ({ min, max }) => ({ type: 'integer', minimum: min ?? INT_MIN, maximum: max ?? INT_MAX }),
  bigint: () => ({ type: 'string', format: 'int64', pattern: BIGINT_PATTERN }),
  decimal: ({ precision = 0, scale = 0 }) => ({ type: 'string', format: 'decimal', pattern: decimalPattern(precision, scale) }),
  float: ({ min, max }) => ({ type: 'number', ...given({ minimum: min, maximum: max }) }),
  bool: () => ({ type: 'boolean' }),
  timestamp: () => ({ type: 'string', format: 'date-time' }),
  date: () => ({ type: 'string', format: 'date' }),
  bytes: () => ({ type: 'string', contentEncoding: 'base64', pattern: BASE64_PATTERN }),
  array: ({ of }, direction) => ({ type: 'array', items: of === undefined ? {} : schemas[of.kind](of, direction) }),
  json: ({ schema }, direction) => jsonColumnSchema(schema ?? {}, direction),
};

function given(keywords: Readonly<Record<string, unknown>>): JsonSchema {
  return Object.fromEntries(Object.entries(keywords).filter(([, value]) => value !== undefined));
}

function decimalPattern(precision: number, scale: number): string {
  const whole = precision - scale === 0 ? '0' : `[0-9]{1,${precision - scale}}`;
  return explained(`^-?${whole}${scale === 0 ? '' : `(?:\\.[0-9]{1,${scale}})?`}$`, decimalForm(precision, scale));
}

function jsonColumnSchema(schema: Schema | Readonly<Record<string, unknown>>, direction: Direction): JsonSchema {
  const { $schema: _dialect, ...body } = ownJsonSchema(schema, direction);
  // What leaves has no sensitive members.
  return asDefinition(direction === 'output' ? schemaWithoutSensitive(body) : body);
}

function ownJsonSchema(schema: Schema | Readonly<Record<string, unknown>>, direction: Direction): JsonSchema {
  return isSchema(schema) ? (schema['~standard'].jsonSchema?.[direction]({ target: 'draft-2020-12' }) ?? {}) : schema;
}

const schemasWithSensitive = new WeakMap<object, JsonSchema | null>();

/** The schema of a JSON column that has sensitive members of its own. */
export function sensitiveSchemaOf({ kind, schema }: Pick<ColumnSettings, 'kind' | 'schema'>): JsonSchema | undefined {
  if (kind !== 'json' || schema === undefined) return undefined;
  let known = schemasWithSensitive.get(schema);
  if (known === undefined) {
    const json = ownJsonSchema(schema, 'output');
    schemasWithSensitive.set(schema, (known = marksSensitive(json) ? json : null));
  }
  return known ?? undefined;
}

/** Kinds whose JSON form differs from their form in code. */
const converters: Readonly<
  Partial<Record<ColumnKind, { readonly read: (json: never) => unknown; readonly write: (value: never) => unknown }>>
> = {
  timestamp: { read: (json: string) => new Date(json), write: timestampText },
  bigint: { read: (json: string) => BigInt(json), write: (value: bigint) => value.toString() },
  bytes: {
    read: (json: string) => new Uint8Array(Buffer.from(json, 'base64')),
    write: (value: Uint8Array) => Buffer.from(value).toString('base64'),
  },
};

/** What decides the JSON form of a value. */
interface JsonKind {
  readonly kind: ColumnKind;
  readonly of?: JsonKind;
}

/** A checked JSON value as code holds it. */
export function fromJson(settings: JsonKind, value: unknown): unknown {
  if (value === null) return null;
  if (settings.kind === 'array')
    return (value as unknown[]).map((item) => (settings.of === undefined ? item : fromJson(settings.of, item)));
  const converter = converters[settings.kind];
  return converter === undefined ? value : converter.read(value as never);
}

/** A value of code as JSON holds it. */
export function toJson(settings: JsonKind, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  if (settings.kind === 'array') return (value as unknown[]).map((item) => (settings.of === undefined ? item : toJson(settings.of, item)));
  const converter = converters[settings.kind];
  return converter === undefined ? value : converter.write(value as never);
}
