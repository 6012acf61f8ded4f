import { asDefinition, withRootDefinitions } from '../../db/values/root-definitions.ts';
import { isSchema, type Schema, type SchemaIssue, type SchemaResult } from '../../db/values/standard-schema.ts';

export { isSchema };
export type { Schema, SchemaIssue, SchemaResult };

/** What the schema takes. */
export type InputOf<S> = S extends Schema ? NonNullable<S['~standard']['types']>['input'] : Record<string, unknown>;

/** What the schema's value is after validation; `Missing` when the route declares none. */
export type OutputOf<S, Missing = undefined> = S extends Schema ? NonNullable<S['~standard']['types']>['output'] : Missing;

/**
 * What a handler returns for a response schema. The value is sent as it is, only declared members, without running the schema: so it must
 * be what goes into the schema (a row with its dates) and what comes out of it (defaults present) at once.
 */
export type AnswerOf<S> = S extends Schema
  ? Both<NonNullable<S['~standard']['types']>['input'], NonNullable<S['~standard']['types']>['output']>
  : undefined | void;

/** One of two equal types: an error then shows the type once. */
type Both<I, O> = [I] extends [O] ? ([O] extends [I] ? O : I & O) : I & O;

/**
 * Query parameters that the handler reads itself from the raw text, because what they mean depends on the caller; the body of QUERY too. The
 * JSON Schema is for documents: nothing is coerced, and no member is refused as unknown before the handler.
 */
export interface RawQuerySchema extends Schema<Readonly<Record<string, string | string[]>>> {
  readonly isRawQuery: true;
}

export function isRawQuery(schema: Schema): schema is RawQuerySchema {
  return (schema as Partial<RawQuerySchema>).isRawQuery === true;
}

export type JsonSchema = Readonly<Record<string, unknown>>;

const TARGET = { target: 'draft-2020-12' };

/** The JSON Schema of what goes in or comes out. Throws when the schema library cannot say; start-up checks report it. */
export function jsonSchemaOf(schema: Schema, direction: 'input' | 'output'): JsonSchema {
  const converter = schema['~standard'].jsonSchema;
  if (converter === undefined)
    throw new TypeError(`${schema['~standard'].vendor} schemas of this version cannot be converted to JSON Schema`);
  const { $schema: _dialect, ...json } = converter[direction](TARGET);
  return withRootDefinitions(json);
}

/** The JSON Schema of a part of another one, whose definitions `jsonSchemaOf` puts where they are found. What the part calls its root is one of them. */
export function partSchemaOf(schema: Schema, direction: 'input' | 'output'): JsonSchema {
  return asDefinition(jsonSchemaOf(schema, direction));
}
