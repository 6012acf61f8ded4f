import { type ColumnSettings, resolveReference, valueDefinition } from './column.ts';
import { valueFault } from './column-codec.ts';
import { columnJsonSchema, fromJson, orNull, toJson } from './column-json.ts';
import { jsonChecker } from './json-checker.ts';
import type { Columns } from './rows.ts';
import { isSchema, type SchemaIssue, type SchemaResult, type Schema } from '../values/standard-schema.ts';
import type { ColumnDefinition } from './table-definition.ts';

type JsonSchema = Record<string, unknown>;

/** Names the component of the OpenAPI document that a JSON Schema becomes, wherever it is used. */
export const COMPONENT_KEYWORD = 'x-component';

/**
 * Columns a client may send when a row is made: not those the application or the toolkit sets. `optional` names columns that may be left out
 * although nothing fills them.
 */
export function inputSchema<O>(
  columns: Columns,
  component?: string,
  optional: ReadonlySet<string> = new Set(),
): Schema<Record<string, unknown>, O> {
  const writable = pick(
    columns,
    ({ readOnly, primaryKey, default: made, dbDefault }) => !readOnly && !(primaryKey && (made !== undefined || dbDefault !== undefined)),
  );
  const isOptional = (each: ColumnSettings): boolean => each.nullable || each.default !== undefined || each.dbDefault !== undefined;
  return writingSchema<O>(writable, {
    isRequired: (settings, name) => !isOptional(settings) && !optional.has(name),
    fills: true,
    component,
  });
}

export function patchSchema<O>(columns: Columns, component?: string): Schema<Record<string, unknown>, O> {
  return writingSchema<O>(
    pick(columns, ({ readOnly, primaryKey }) => !readOnly && !primaryKey),
    { isRequired: () => false, fills: false, component },
  );
}

/** A row in JSON form. Columns it does not know, sensitive and internal ones are left out. */
export function outputSchema<I>(columns: Columns, component?: string): Schema<I, Record<string, unknown>> {
  const shown = pick(columns, ({ sensitive, internal }) => !sensitive && internal !== true);
  const schema = lazily(() =>
    objectSchema(shown, {
      isRequired: () => true,
      schemaOf: (settings) => columnJsonSchema(resolveReference(settings), 'output'),
      component,
    }),
  );
  const resolved = lazily(() => shown.map(([name, settings]) => [name, resolveReference(settings)] as const));
  return standardSchema(schema, schema, (value) => {
    if (typeof value !== 'object' || value === null) return { issues: [{ message: 'must be a row', code: 'invalid_type', path: [] }] };
    const row = value as Record<string, unknown>;
    const json: Record<string, unknown> = {};
    const issues: SchemaIssue[] = [];
    for (const [name, settings] of resolved()) {
      if (row[name] === undefined) issues.push({ message: 'is missing from the row', code: 'required', path: [name] });
      else json[name] = toJson(settings, row[name]);
    }
    return issues.length > 0 ? { issues } : { value: json };
  });
}

type NamedSettings = readonly (readonly [string, ColumnSettings])[];

function pick(columns: Columns, keep: (settings: ColumnSettings) => boolean): NamedSettings {
  return Object.entries(columns)
    .map(([name, column]) => [name, column.settings] as const)
    .filter(([, settings]) => keep(settings));
}

interface Writing {
  readonly isRequired: (settings: ColumnSettings, name: string) => boolean;
  /** Absent or null lets the database fill a column that has a database default: null is accepted there and left out of the result. */
  readonly fills: boolean;
  readonly component: string | undefined;
}

function writingSchema<O>(columns: NamedSettings, { isRequired, fills, component }: Writing): Schema<Record<string, unknown>, O> {
  const isFilled = (settings: ColumnSettings): boolean => fills && settings.dbDefault !== undefined;
  const schema = lazily(() =>
    objectSchema(columns, {
      isRequired,
      component,
      schemaOf: (settings) => {
        const { default: filled, ...own } = columnJsonSchema(resolveReference(settings), 'input');
        // A generated client sends the defaults it reads: in a change it would reset columns.
        const schema = fills && filled !== undefined ? { ...own, default: filled } : own;
        return isFilled(settings) && !settings.nullable ? orNull(schema) : schema;
      },
    }),
  );
  const check = lazily(() => jsonChecker(schema()));
  const readers = lazily(() =>
    columns.map(([name, settings]) => ({ name, settings: resolveReference(settings), definition: valueDefinition(settings) })),
  );
  return standardSchema(schema, schema, (value) => {
    const faults = check()(value);
    if (faults.length > 0) return { issues: faults };
    return read<O>(value as Record<string, unknown>, readers(), isFilled);
  });
}

interface Reader {
  readonly name: string;
  readonly settings: ColumnSettings;
  readonly definition: ColumnDefinition;
}

function read<O>(
  body: Record<string, unknown>,
  readers: readonly Reader[],
  isFilled: (settings: ColumnSettings) => boolean,
): SchemaResult<O> {
  const result: Record<string, unknown> = {};
  const issues: SchemaIssue[] = [];
  for (const { name, settings, definition } of readers) {
    if (!Object.hasOwn(body, name)) continue;
    const given = body[name];
    if (given === null && isFilled(settings)) continue;
    if (given === null && settings.nullable) {
      result[name] = null;
      continue;
    }
    const value = settings.kind === 'json' ? readJson(settings, given, name, issues) : fromJson(settings, given);
    const fault = value === UNREADABLE ? undefined : valueFault(value, definition);
    if (fault !== undefined) issues.push({ message: fault, code: 'invalid', path: [name] });
    result[name] = value;
  }
  return issues.length > 0 ? { issues } : { value: result as O };
}

const UNREADABLE = Symbol('unreadable');

/** A JSON column may bring its own Standard Schema, with rules that JSON Schema cannot say. */
function readJson({ schema }: ColumnSettings, value: unknown, name: string, issues: SchemaIssue[]): unknown {
  if (!isSchema(schema)) return value;
  const result = schema['~standard'].validate(value);
  if (result instanceof Promise) throw new TypeError(`The schema of column "${name}" is asynchronous: columns need a synchronous schema.`);
  if (result.issues === undefined) return result.value;
  for (const issue of result.issues) issues.push({ code: 'invalid', ...issue, path: [name, ...(issue.path ?? [])] });
  return UNREADABLE;
}

interface ObjectShape {
  readonly isRequired: (settings: ColumnSettings, name: string) => boolean;
  readonly schemaOf: (settings: ColumnSettings) => JsonSchema;
  readonly component: string | undefined;
}

function objectSchema(columns: NamedSettings, { isRequired, schemaOf, component }: ObjectShape): JsonSchema {
  const required = columns.filter(([name, settings]) => isRequired(settings, name)).map(([name]) => name);
  return {
    ...(component === undefined ? {} : { [COMPONENT_KEYWORD]: component }),
    type: 'object',
    properties: Object.fromEntries(columns.map(([name, settings]) => [name, schemaOf(settings)])),
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  };
}

function standardSchema<I, O>(
  input: () => JsonSchema,
  output: () => JsonSchema,
  validate: (value: unknown) => SchemaResult<O>,
): Schema<I, O> {
  return Object.freeze({
    '~standard': Object.freeze({
      version: 1 as const,
      vendor: 'kit',
      validate,
      jsonSchema: Object.freeze({ input: () => structuredClone(input()), output: () => structuredClone(output()) }),
    }),
  });
}

/** References are functions to models that may be declared later, so nothing is resolved before the first use. */
function lazily<V>(make: () => V): () => V {
  let made: { readonly value: V } | undefined;
  return () => (made ??= { value: make() }).value;
}
