import type { Schema, SchemaResult } from '../../http/schema.ts';
import type { Policy } from '../policy/policy.ts';

/** What a URL means otherwise, however it is encoded: the list itself, and the steps of a relative path. */
const NO_ADDRESS: ReadonlySet<unknown> = new Set(['', '.', '..']);
const MESSAGE = 'The value is the last segment of the URL of the record: it cannot be empty, "." or "..".';

/** The schema of a row whose key can stand in an address. Another row would be there, and could not be read, changed or deleted. */
export function withAddress<I, O>(schema: Schema<I, O>, { model }: Policy, key: string): Schema<I, O> {
  if (model.columns[key]?.settings.kind !== 'text') return schema;
  const { validate } = schema['~standard'];
  const checked = (value: unknown): SchemaResult<O> | Promise<SchemaResult<O>> => {
    const result = validate(value);
    const given = typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[key] : undefined;
    if (!NO_ADDRESS.has(given)) return result;
    const fault = { path: [key], code: 'invalid', message: MESSAGE };
    const withFault = ({ issues = [] }: SchemaResult<O>) => ({ issues: [...issues, fault] });
    return result instanceof Promise ? result.then(withFault) : withFault(result);
  };
  return { ...schema, '~standard': { ...schema['~standard'], validate: checked } };
}
