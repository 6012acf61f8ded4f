import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';

/**
 * Standard Schema (https://standardschema.dev) as the toolkit uses it. The conversion to JSON Schema is optional here, because not every library
 * has it: whatever needs it says so when it is missing.
 */
export interface Schema<Input = unknown, Output = Input> {
  readonly '~standard': SchemaProps<Input, Output>;
}

interface SchemaProps<Input, Output> extends StandardSchemaV1.Props<Input, Output> {
  readonly validate: (value: unknown, options?: StandardSchemaV1.Options) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
  readonly jsonSchema?: StandardJSONSchemaV1.Converter;
}

export type SchemaResult<Output> = StandardSchemaV1.SuccessResult<Output> | { readonly issues: readonly SchemaIssue[] };

export interface SchemaIssue extends StandardSchemaV1.Issue {
  /** Not part of the standard, but what Zod and the model layer carry: a stable word for the kind of fault. */
  readonly code?: string | undefined;
}

/** Where a fault is: a step is a name, a number in a list, or an object around one of them. */
export function stepsOf({ path = [] }: SchemaIssue): (string | number)[] {
  return path.map((step) => {
    const key = typeof step === 'object' ? step.key : step;
    return typeof key === 'number' ? key : String(key);
  });
}

export function isSchema(value: unknown): value is Schema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const standard = (value as Partial<Schema>)['~standard'];
  return typeof standard === 'object' && standard !== null && typeof standard.validate === 'function';
}
