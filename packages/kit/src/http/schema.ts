/** The part of Standard Schema (https://standardschema.dev) the toolkit relies on: validation, types and the JSON Schema half. */
export interface Schema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: string }) => Record<string, unknown>;
      readonly output: (options: { readonly target: string }) => Record<string, unknown>;
    };
  };
}

export type SchemaResult<Output> = { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] };

export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
  /** Not part of the standard, but what Zod and the model layer carry: a stable word for the kind of fault. */
  readonly code?: string | undefined;
}

/** What the schema takes. */
export type InputOf<S> = S extends Schema ? NonNullable<S['~standard']['types']>['input'] : Record<string, unknown>;

/** What the schema's value is after validation; `Missing` when the route declares none. */
export type OutputOf<S, Missing = undefined> = S extends Schema ? NonNullable<S['~standard']['types']>['output'] : Missing;

/**
 * What a handler returns for a response schema. The value is sent as it is, only declared members, without running the schema: so it must
 * be what goes into the schema (a row with its dates) and what comes out of it (defaults present) at once.
 */
export type AnswerOf<S> = S extends Schema
  ? NonNullable<S['~standard']['types']>['input'] & NonNullable<S['~standard']['types']>['output']
  : undefined | void;

/**
 * Query parameters that the handler reads itself from the raw text, because what they mean depends on the caller. The JSON Schema is for
 * documents; nothing is coerced, checked or refused before the handler.
 */
export interface RawQuerySchema extends Schema<Readonly<Record<string, string | string[]>>> {
  readonly isRawQuery: true;
}

export function isRawQuery(schema: Schema): schema is RawQuerySchema {
  return (schema as Partial<RawQuerySchema>).isRawQuery === true;
}

export type JsonSchema = Readonly<Record<string, unknown>>;

const TARGET = { target: 'draft-2020-12' };

export function isSchema(value: unknown): value is Schema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const standard = (value as Partial<Schema>)['~standard'];
  return typeof standard === 'object' && standard !== null && typeof standard.validate === 'function';
}

/** The JSON Schema of what goes in or comes out. Throws when the schema library cannot say; start-up checks report it. */
export function jsonSchemaOf(schema: Schema, direction: 'input' | 'output'): JsonSchema {
  const converter = schema['~standard'].jsonSchema;
  if (converter === undefined) throw new TypeError(`${schema['~standard'].vendor} schemas of this version have no JSON Schema half`);
  const { $schema: _dialect, ...json } = converter[direction](TARGET);
  return json;
}
