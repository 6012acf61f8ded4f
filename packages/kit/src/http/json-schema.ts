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
