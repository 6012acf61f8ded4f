import { jsonChecker } from '../db/json-checker.ts';
import type { JsonSchema, Schema } from './schema.ts';

/**
 * A Standard Schema from a plain JSON Schema, for modules that take no schema library along. `T` is the author's word for
 * what the schema describes; the compiler cannot check it.
 */
export function jsonSchema<T>(definition: JsonSchema): Schema<T> {
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
      jsonSchema: Object.freeze({ input: () => structuredClone({ ...definition }), output: () => structuredClone({ ...definition }) }),
    }),
  });
}

/** Parameters of a path that name a row. What cannot be an id is exactly as missing as an id that no row has. */
export function idParams<T>(properties: Readonly<Record<string, JsonSchema>>, notFound: () => Error): Schema<T> {
  const schema = jsonSchema<T>({ type: 'object', properties, required: Object.keys(properties) });
  const standard = schema['~standard'];
  const validate = (value: unknown) => {
    const result = standard.validate(value);
    if (!(result instanceof Promise) && result.issues !== undefined) throw notFound();
    return result;
  };
  return Object.freeze({ '~standard': Object.freeze({ ...standard, validate }) });
}
