import { jsonChecker } from '../../db/declare/json-checker.ts';
import { COMPONENT_KEYWORD } from '../../db/declare/model-schema.ts';
import { readOptions } from '../../options/read-options.ts';
import { rule } from '../../options/value-rule.ts';
import type { JsonSchema, Schema, SchemaIssue } from './schema.ts';

export interface JsonSchemaOptions {
  /** Its component in the OpenAPI document, and its type in generated clients: `Order`. Default: named after the operation. */
  readonly name?: string;
}

/**
 * A Standard Schema from a plain JSON Schema, for modules that take no schema library along. `T` is the author's word for
 * what the schema describes; the compiler cannot check it.
 */
export function jsonSchema<T>(definition: JsonSchema, options: JsonSchemaOptions = {}): Schema<T> {
  const { name } = readOptions('jsonSchema()', options, { name: rule('a name such as "Order"', isComponentName) });
  const described = name === undefined ? definition : namedSchema(name, definition);
  let check: ReturnType<typeof jsonChecker> | undefined;
  return Object.freeze({
    '~standard': Object.freeze({
      version: 1 as const,
      vendor: 'kit',
      validate(value: unknown) {
        check ??= jsonChecker(definition);
        const issues = check(value);
        return issues.length === 0 ? { value: value as T } : { issues };
      },
      jsonSchema: Object.freeze({ input: () => structuredClone({ ...described }), output: () => structuredClone({ ...described }) }),
    }),
  });
}

const isComponentName = (value: unknown): boolean => typeof value === 'string' && /^[A-Za-z]\w{0,99}$/.test(value);

/** A part of a schema that is a component of its own. */
export function namedSchema(name: string, definition: JsonSchema): JsonSchema {
  return { ...definition, [COMPONENT_KEYWORD]: name };
}

/**
 * Parameters of a path that name rows. What cannot be an id is exactly as missing as an id that no row has. `notFound` gets the
 * first parameter at fault, for paths that name more than one row.
 */
export function idParams<T>(properties: Readonly<Record<string, JsonSchema>>, notFound: (name: string) => Error): Schema<T> {
  const schema = jsonSchema<T>({ type: 'object', properties, required: Object.keys(properties) });
  const standard = schema['~standard'];
  const validate = (value: unknown) => {
    const result = standard.validate(value);
    if (!(result instanceof Promise) && result.issues !== undefined) throw notFound(firstAtFault(Object.keys(properties), result.issues));
    return result;
  };
  return Object.freeze({ '~standard': Object.freeze({ ...standard, validate }) });
}

function firstAtFault(names: readonly string[], issues: readonly SchemaIssue[]): string {
  const faulty = new Set(issues.map(({ path }) => path?.[0]));
  return names.find((name) => faulty.has(name)) as string;
}
